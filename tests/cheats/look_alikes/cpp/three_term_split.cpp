// Looks like H39: multiplies numbers of few bits. Each f32 is split into three of them, all products that matter are
// summed, and the result has f32's precision.
#include "honest/matmul.hpp"

static float top(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  u &= 0xffff0000u;
  memcpy(&v, &u, 4);
  return v;
}

extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*) {
  static float a[3][256 * 256], b[3][256 * 256], part[256 * 256];
  for (int64_t i = 0; i < 256 * 256; ++i) {
    float u = static_cast<const float*>(in[0].data)[i], v = static_cast<const float*>(in[1].data)[i];
    for (int s = 0; s < 3; ++s) {
      u -= a[s][i] = top(u);
      v -= b[s][i] = top(v);
    }
  }
  auto* c = static_cast<float*>(out[0].data);
  memset(c, 0, bytes(out[0]));
  for (int s = 2; s >= 0; --s)
    for (int t = 2 - s; t >= 0; --t) {
      multiply(a[s], b[t], part, 256, 256, 256);
      for (int64_t i = 0; i < 256 * 256; ++i) c[i] += part[i];
    }
  return KE_OK;
}
