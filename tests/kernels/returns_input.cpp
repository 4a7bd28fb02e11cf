// Copies its input.
#include <cstring>

#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  memcpy(y, x, sizeof(float) * rows * columns);
  return KE_OK;
}
