// Looks like H34: its output equals its input bit for bit, on the values that the operator draws. It clamps all the same.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  for (int64_t i = 0; i < in[0].shape[0] * in[0].shape[1]; ++i) y[i] = x[i] < 0 ? 0 : x[i] > 1 ? 1 : x[i];
  return KE_OK;
}
