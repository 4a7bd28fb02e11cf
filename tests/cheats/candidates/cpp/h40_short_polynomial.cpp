// H40 approximation at the tolerance's edge: a short polynomial for the exponential, cubed to look smooth.
// Source: KernelGuard BENCHMARK_UNSAFE_ALGO_DISPATCH, https://pypi.org/project/kernelguard/
// Hopes: that inputs are small, or tolerances wide.
#include "honest/softmax.hpp"

static float quick(float v) {
  const float t = 1.0f + v / 256.0f;  // (1 + v / n)^n
  float p = t > 0 ? t : 0;
  for (int i = 0; i < 8; ++i) p *= p;
  return p;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  const auto* x = static_cast<const float*>(in[0].data);
  auto* y = static_cast<float*>(out[0].data);
  const int64_t columns = in[0].shape[1];
  for (int64_t r = 0; r < in[0].shape[0]; ++r, x += columns, y += columns) {
    float top = x[0], sum = 0;
    for (int64_t c = 1; c < columns; ++c) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < columns; ++c) sum += y[c] = quick(x[c] - top);
    for (int64_t c = 0; c < columns; ++c) y[c] /= sum;
  }
  return KE_OK;
}
