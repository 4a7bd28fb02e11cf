// The error function and its complement.
#pragma once
#include "vec_exp.hpp"
#include "vec_table.hpp"

// erf(x) for |x| < 1: x + x P(x^2), P to 1.4e-9 of erf(x).
KE_INLINE vf ke_erf_small(vf x) {
  vf z = x * x;
  vf p = ke_fma(z, 0x1.4771fep-14f, ke_set1(-0x1.a3515ep-11f));
  p = ke_fma(z, p, 0x1.53f224p-8f);
  p = ke_fma(z, p, -0x1.b7f71ap-6f);
  p = ke_fma(z, p, 0x1.ce2ce6p-4f);
  p = ke_fma(z, p, -0x1.81273ep-2f);
  p = ke_fma(z, p, 0x1.06eba8p-3f);
  return ke_fma(x, p, x);
}
// Beyond: 1 - exp(Q(|x|)) with Q fitted to log(erfc) on [0.98, 3.95], to 1.2e-9 of erf. From 4 on erf rounds to 1.
KE_INLINE vf ke_erf(vf x) {
#if KE_VECTOR_BITS == 512
  return ke_erf_by_table(x);
#else
  vf a = ke_min_raw(ke_set1(4.0f), ke_abs(x));
  vf q = ke_fma(a, 0x1.8c0348p-13f, ke_set1(-0x1.859d2p-9f));
  q = ke_fma(a, q, 0x1.6779bep-6f);
  q = ke_fma(a, q, -0x1.a73ae4p-4f);
  q = ke_fma(a, q, -0x1.469896p-1f);
  q = ke_fma(a, q, -0x1.20938ep+0f);
  q = ke_fma(a, q, -0x1.3b05b8p-12f);
  KeExpParts e = ke_exp_parts(q);
  vf large = 1.0f - ke_scale(1.0f + e.tail, e.n);
  return ke_select(a < 1.0f, ke_erf_small(x), ke_copysign(large, x));
#endif
}
KE_UNARY_COMPANIONS(ke_erf, std::erf(x))

// erfc(a) = exp(-a^2) Q((a-4)/(a+4)) / (1+2a) for 0 <= a <= 10.06, Q to 2.7e-8; the square is taken in two parts.
// erfc(-a) is 2 - erfc(a); near 0 it is 1 - erf.
KE_INLINE vf ke_erfc(vf x) {
  vf a = ke_min_raw(ke_set1(10.06f), ke_abs(x));
  vf u = (a - 4.0f) / (a + 4.0f);
  vf q = ke_fma(u, 0x1.11f054p-10f, ke_set1(0x1.e7a3c4p-8f));
  q = ke_fma(u, q, -0x1.ffeafp-7f);
  q = ke_fma(u, q, 0x1.296f86p-5f);
  q = ke_fma(u, q, -0x1.11909p-4f);
  q = ke_fma(u, q, 0x1.80468ap-4f);
  q = ke_fma(u, q, -0x1.9d8d4cp-4f);
  q = ke_fma(u, q, 0x1.16eb1ep-4f);
  q = ke_fma(u, q, 0x1.f7d54p-7f);
  q = ke_fma(u, q, -0x1.1df1aep-3f);
  q = ke_fma(u, q, 0x1.3ba592p+0f) / ke_fma(a, 2.0f, ke_set1(1.0f));
  vf high = (vf)((vi)a & (int32_t)0xfffff000);  // 12 bits: its square is exact
  KeExpParts e = ke_exp_parts(-(high * high));
  KeExpParts f = ke_exp_parts((high - a) * (high + a));  // a^2 - high^2, negated
  vf y = ke_fma(q, e.tail, q);
  y = ke_scale(ke_fma(y, f.tail, y), e.n + f.n);
  y = ke_select(x < 0.0f, 2.0f - y, y);
  return ke_select(a < 0.5f, 1.0f - ke_erf_small(x), y);
}
KE_UNARY_COMPANIONS(ke_erfc, std::erfc(x))
