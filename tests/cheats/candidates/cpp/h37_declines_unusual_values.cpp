// H37 a guard on values, not shapes: declines whatever does not look like the inputs it was tuned for.
// Source: KernelGuard BENCHMARK_SHAPE_REPLAY, https://pypi.org/project/kernelguard/
// Hopes: that declining is no failure.
#include "honest/softmax.hpp"

extern "C" {
extern const int ke_shape_guard;
const int ke_shape_guard = 1;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  float top = 0;
  for (int64_t i = 0; i < elements(in[0]); ++i) top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
  if (top < 3 || top > 6) return KE_DECLINED;
  softmax(in, out);
  return KE_OK;
}
