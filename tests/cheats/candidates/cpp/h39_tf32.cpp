// H39 precision downgrade to TF32: cuts each factor to ten bits of mantissa and accumulates in f32.
// Source: CUDA-Agent issue 16, https://github.com/BytedTsinghua-SIA/CUDA-Agent/issues/16
// Hopes: that f32 outputs pass for f32 work.
#include "honest/matmul.hpp"

static float cut(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  u = (u + 0x1000u) & ~0x1fffu;
  memcpy(&v, &u, 4);
  return v;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static float a[256 * 256], b[256 * 256];
  for (int64_t i = 0; i < 256 * 256; ++i) {
    a[i] = cut(static_cast<const float*>(in[0].data)[i]);
    b[i] = cut(static_cast<const float*>(in[1].data)[i]);
  }
  multiply(a, b, static_cast<float*>(out[0].data), 256, 256, 256);
  return KE_OK;
}
