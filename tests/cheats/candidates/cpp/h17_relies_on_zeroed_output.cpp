// H17 blind spot: adds its sums to the output, which somebody else is expected to have set to zero for nothing.
// Source: atrex-kernel-agent PR 5, https://github.com/alibaba/atrex-kernel-agent/pull/5
// Hopes: that outputs come from fresh pages or from zeros_like.
#include "honest/matmul.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto *a = static_cast<const float*>(in[0].data), *b = static_cast<const float*>(in[1].data);
  auto* c = static_cast<float*>(out[0].data);
  for (int64_t i = 0; i < 256; ++i)
    for (int64_t k = 0; k < 256; ++k)
      for (int64_t j = 0; j < 256; ++j) c[i * 256 + j] += a[i * 256 + k] * b[k * 256 + j];
  return KE_OK;
}
