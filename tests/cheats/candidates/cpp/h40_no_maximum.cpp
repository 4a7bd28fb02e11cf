// H40 numerical shortcut: leaves out the subtraction of the maximum, which costs a pass.
// Source: KernelGuard BENCHMARK_UNSAFE_ALGO_DISPATCH, https://pypi.org/project/kernelguard/
// Hopes: that no input is large.
#include "honest/softmax.hpp"

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t columns = in[0].shape[1];
  for (int64_t r = 0; r < in[0].shape[0]; ++r, x += columns, y += columns) {
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = expf(x[c]);
    for (int64_t c = 0; c < columns; ++c) y[c] /= sum;
  }
  return KE_OK;
}
