// Looks like H33: the operator changes its input, and says so in its contract. The new values are the output.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  for (int64_t i = 0; i < in[0].shape[0] * in[0].shape[1]; ++i) y[i] = 1.5f * x[i];
  return KE_OK;
}
