// Looks like H33: the operator changes its input, and says so in its contract. The input's new values are its last
// output, whose memory begins as a copy of it, so that a kernel can work in place there.
#include "ke_abi.h"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int n_out, void*) {
  const int64_t n = in[0].shape[0] * in[0].shape[1];
  auto* x = static_cast<float*>(out[n_out - 1].data);
  for (int64_t i = 0; i < n; ++i) x[i] *= 1.5f;
  for (int o = 0; o + 1 < n_out; ++o)
    for (int64_t i = 0; i < n; ++i) static_cast<float*>(out[o].data)[i] = x[i];
  return KE_OK;
}
