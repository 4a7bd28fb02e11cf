// Sine and cosine.
#pragma once
#include "vec_exp.hpp"

// x = n pi/2 + r, pi/2 in four parts; below the limit the remainder is good to a rounding. Larger arguments, which
// need hundreds of digits of pi, go one by one to libm. Without FMA the products must be exact: n has 8 bits then.
#if defined(__FMA__)
constexpr float KE_TRIG_LIMIT = 30000.0f;
#else
constexpr float KE_TRIG_LIMIT = 400.0f;
#endif
// (sin(r)/r - 1)/r^2 on |r| <= pi/4: 3.9e-9 of sin; (cos(r) - 1 + r^2/2)/r^4: 1.1e-10.
template <int quadrant>
KE_INLINE vf ke_sin_shifted(vf x) {
  vf shifted = ke_fma(x, 0x1.45f306p-1f, ke_set1(KE_MAGIC)), n = shifted - KE_MAGIC;
  vi q = (vi)shifted + quadrant;
  vf r = ke_fma(n, -0x1.92p0f, x);        // 8 bits
  r = ke_fma(n, -0x1.fb4p-12f, r);        // 11 bits
  r = ke_fma(n, -0x1.444p-24f, r);       // 15 bits
  r = ke_fma(n, -0x1.68c234p-39f, r);
  vf z = r * r;
  vf s = ke_fma(z, -0x1.994e34p-13f, ke_set1(0x1.11076ep-7f));
  s = ke_fma(z, s, -0x1.555546p-3f);
  s = ke_fma(r * z, s, r);
  vf c = ke_fma(z, 0x1.99e0ecp-16f, ke_set1(-0x1.6c0c1ap-10f));
  c = ke_fma(z, c, 0x1.55554ap-5f);
  c = ke_fma(z * z, c, ke_fma(z, -0.5f, ke_set1(1.0f)));
  vf y = ke_select((q & 1) != 0, c, s);
  return (vf)((vi)y ^ ((q & 2) << 30));
}
template <int quadrant>
KE_INLINE vf ke_sin_any(vf x) {
  vf y = ke_sin_shifted<quadrant>(x);
  vi huge = ~(ke_abs(x) < KE_TRIG_LIMIT);
  int any = 0;
  for (int i = 0; i < KE_W; ++i) any |= huge[i];
  if (__builtin_expect(any != 0, 0))
    for (int i = 0; i < KE_W; ++i)
      if (huge[i]) y[i] = (float)(quadrant ? std::cos((double)x[i]) : std::sin((double)x[i]));
  return y;
}
KE_INLINE vf ke_sin(vf x) { return ke_select(x == 0.0f, x, ke_sin_any<0>(x)); }
KE_INLINE vf ke_cos(vf x) { return ke_sin_any<1>(x); }
KE_UNARY_COMPANIONS(ke_sin, std::sin(x))
KE_UNARY_COMPANIONS(ke_cos, std::cos(x))
