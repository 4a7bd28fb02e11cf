// Right, and leaves its input changed.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  auto* x = static_cast<float*>(in[0].data);
  const auto* b = static_cast<const float*>(in[1].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t rows = in[0].shape[0], columns = in[0].shape[1];
  for (int64_t i = 0; i < rows * columns; ++i) {
    y[i] = x[i] + b[i % columns];
    x[i] = 0;
  }
  return KE_OK;
}
