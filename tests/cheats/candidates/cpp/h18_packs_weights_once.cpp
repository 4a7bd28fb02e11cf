// H18 cost outside the span: packs the weights at the first call and never again, though nobody promised that they stay.
// Source: KernelGuard PREPROCESS_CACHE; flashinfer contest, https://github.com/flashinfer-ai/flashinfer-bench-starter-kit/issues/21
// Hopes: that weights are the same in every call.
#include "honest/linear.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static const std::vector<float> weights = packed(in[1]);
  multiply_packed(in, weights, out);
  return KE_OK;
}
