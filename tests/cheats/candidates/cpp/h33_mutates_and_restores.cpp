// H33 input mutation, undone: uses an input as scratch space and puts it back before it returns.
// Source: atrex-bench PR 12, https://github.com/alibaba/atrex-bench/pull/12 (hidden mutations)
// Hopes: that inputs are compared afterwards only.
#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  auto* x = static_cast<volatile float*>(in[0].data);
  const float first = x[0];
  x[0] = 0;
  x[0] = first;
  softmax(in, out);
  return KE_OK;
}
