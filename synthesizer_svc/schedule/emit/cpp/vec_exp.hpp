// Exponentials, logarithms and what is made of them: exp expm1 log log1p tanh sigmoid pow.
#pragma once
#include "vec_arith.hpp"

// Scalars go through lane 0 of the vector function, so that a tail computed one by one has the same bits; float64
// goes to libm.
#define KE_UNARY_COMPANIONS(NAME, LIBM)                                         \
  KE_INLINE float NAME(float x) { return NAME(ke_set1(x))[0]; }                 \
  KE_INLINE double NAME(double x) { return LIBM; }                              \
  KE_INLINE vd NAME(vd v) {                                                     \
    for (int i = 0; i < KE_WD; ++i) { double x = v[i]; v[i] = LIBM; }           \
    return v;                                                                   \
  }

// Nearest integer to x for |x| < 2^22, as a float whose low bits hold the integer.
constexpr float KE_MAGIC = 0x1.8p23f;

// p * 2^n for integral n in [-300, 300], rounded once.
KE_INLINE vf ke_scale(vf p, vf n) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  vi k = __builtin_convertvector(n, vi), half = k >> 1;
  return p * (vf)((half + 127) << 23) * (vf)((k - half + 127) << 23);
#endif
}

struct KeExpParts { vf tail, n; };  // exp(x) = (1 + tail) * 2^n
// x in [-105, 89] or NaN. Reduction by ln 2 in two parts (the first has 10 bits, so n times it is exact).
// (exp(r) - 1 - r) / r^2 on |r| <= ln(2)/2: 3.3e-9 of exp.
KE_INLINE KeExpParts ke_exp_parts(vf x) {
  vf n = ke_fma(x, 0x1.715476p0f, ke_set1(KE_MAGIC)) - KE_MAGIC;
  vf r = ke_fma(n, -0x1.63p-1f, x);
  r = ke_fma(n, 0x1.bd0106p-13f, r);
  vf q = ke_fma(r, 0x1.6d7c9ep-10f, ke_set1(0x1.123afep-7f));
  q = ke_fma(r, q, 0x1.5554bep-5f);
  q = ke_fma(r, q, 0x1.55549p-3f);
  q = ke_fma(r, q, 0.5f);
  return {ke_fma(r * r, q, r), n};
}
KE_INLINE vf ke_clamp_keeping_nan(vf x, float low, float high) {
  return ke_max_raw(ke_set1(low), ke_min_raw(ke_set1(high), x));
}
KE_INLINE vf ke_exp(vf x) {
  KeExpParts e = ke_exp_parts(ke_clamp_keeping_nan(x, -105.0f, 89.0f));
  return ke_scale(1.0f + e.tail, e.n);
}
KE_UNARY_COMPANIONS(ke_exp, std::exp(x))
// exp of arguments at most 0 (softmax): one instruction less.
KE_INLINE vf ke_exp_nonpositive(vf x) {
  KeExpParts e = ke_exp_parts(ke_max_raw(ke_set1(-105.0f), x));
  return ke_scale(1.0f + e.tail, e.n);
}
KE_UNARY_COMPANIONS(ke_exp_nonpositive, std::exp(x))

KE_INLINE vf ke_expm1(vf x) {
  KeExpParts e = ke_exp_parts(ke_clamp_keeping_nan(x, -20.0f, 89.0f));
  vf half = ke_scale(ke_set1(0.5f), e.n);  // 2^n / 2: 2^128 would not be finite
  vf y = 2.0f * ke_fma(half, e.tail, half - 0.5f);
  return ke_select(ke_abs(x) < 0x1p-25f, x, y);
}
KE_UNARY_COMPANIONS(ke_expm1, std::expm1(x))

// Below -88.7, where the value is denormal, 0.
KE_INLINE vf ke_sigmoid(vf x) { return 1.0f / (1.0f + ke_exp(-x)); }
KE_UNARY_COMPANIONS(ke_sigmoid, 1.0 / (1.0 + std::exp(-x)))

// log(1 + f) - f for f in [-0.25, 0.5]: -f^2/2 + f^3 P(f), P to 4.9e-9 of log(1 + f).
KE_INLINE vf ke_log1p_tail(vf f) {
  vf p = ke_fma(f, -0x1.718f38p-5f, ke_set1(0x1.acce3ep-4f));
  p = ke_fma(f, p, -0x1.0d989cp-3f);
  p = ke_fma(f, p, 0x1.28841ap-3f);
  p = ke_fma(f, p, -0x1.54ee38p-3f);
  p = ke_fma(f, p, 0x1.996978p-3f);
  p = ke_fma(f, p, -0x1.000046p-2f);
  p = ke_fma(f, p, 0x1.5555a4p-2f);
  vf s = f * f;
  return ke_fma(s * f, p, -0.5f * s);
}
struct KeLogParts { vf e, f; };  // x = 2^e (1 + f), f in [-0.25, 0.5]
KE_INLINE KeLogParts ke_log_parts(vf x) {
#if KE_VECTOR_BITS == 512  // answers 0, infinities, negative numbers and NaN by itself
  __m512 m = _mm512_getmant_ps((__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);
  return {(vf)_mm512_getexp_ps((__m512)x) - (vf)_mm512_getexp_ps(m), (vf)m - 1.0f};
#else
  vi tiny = x < 0x1p-126f;
  vi bits = (vi)ke_select(tiny, x * 0x1p23f, x);
  vi k = (bits - 0x3f400000) >> 23;  // 0.75 * 2^k <= x < 1.5 * 2^k
  vf e = __builtin_convertvector(k, vf) - ke_select(tiny, ke_set1(23.0f), ke_set1(0.0f));
  return {e, (vf)(bits - (k << 23)) - 1.0f};
#endif
}
// y, but the logarithm of what has none.
KE_INLINE vf ke_log_special(vf x, vf y) {
  y = ke_select(x < __builtin_inff(), y, x);  // infinity, NaN
  y = ke_select(x == 0.0f, ke_set1(-__builtin_inff()), y);
  return ke_select(x < 0.0f, ke_set1(__builtin_nanf("")), y);
}
// e ln 2 + log(1 + f); both parts of ln 2 positive, so that an infinite e passes through.
KE_INLINE vf ke_log_join(vf e, vf f) {
  return ke_fma(e, 0x1.62e4p-1f, f + ke_fma(e, 0x1.7f7d1cp-20f, ke_log1p_tail(f)));
}
KE_INLINE vf ke_log(vf x) {
  KeLogParts l = ke_log_parts(x);
  vf y = ke_log_join(l.e, l.f);
  return KE_VECTOR_BITS == 512 ? y : ke_log_special(x, y);
}
KE_UNARY_COMPANIONS(ke_log, std::log(x))
// 1 / ln 2 in two parts; exact for powers of two.
KE_INLINE vf ke_log2(vf x) {
  KeLogParts l = ke_log_parts(x);
  vf tail = ke_fma(l.f, 0x1.4ae0cp-26f, ke_log1p_tail(l.f) * 0x1.715476p0f);
  vf y = l.e + ke_fma(l.f, 0x1.715476p0f, tail);
  return KE_VECTOR_BITS == 512 ? y : ke_log_special(x, y);
}
KE_UNARY_COMPANIONS(ke_log2, std::log2(x))

// With u = 1 + x = 2^k (1 + f), f is x 2^-k + (2^-k - 1): no digit of x is lost.
KE_INLINE vf ke_log1p(vf x) {
  vf u = 1.0f + x;
  vi k = ((vi)u - 0x3f400000) >> 23;
  vf s = (vf)((127 - ke_min(k, ke_set1(100))) << 23);
  vf m = (vf)((vi)u - (k << 23));
  vf f = ke_select(k < 100, ke_fma(x, s, s - 1.0f), m - 1.0f);
  vf y = ke_log_join(__builtin_convertvector(k, vf), f);
  y = ke_select(ke_abs(x) < 0x1p-25f, x, y);
  y = ke_select(x < __builtin_inff(), y, x);
  y = ke_select(x == -1.0f, ke_set1(-__builtin_inff()), y);
  return ke_select(x < -1.0f, ke_set1(__builtin_nanf("")), y);
}
KE_UNARY_COMPANIONS(ke_log1p, std::log1p(x))

// |x| < 0.6: x + x^3 P(x^2), P to 2.8e-9 of tanh(x); beyond: 1 - 2 / (exp(2|x|) + 1).
KE_INLINE vf ke_tanh(vf x) {
  vf a = ke_abs(x), z = x * x;
  vf p = ke_fma(z, -0x1.828776p-8f, ke_set1(0x1.54c3c2p-6f));
  p = ke_fma(z, p, -0x1.b89abap-5f);
  p = ke_fma(z, p, 0x1.1109bep-3f);
  p = ke_fma(z, p, -0x1.55553ep-2f);
  vf small = ke_fma(x * z, p, x);
  KeExpParts e = ke_exp_parts(ke_min_raw(ke_set1(20.0f), a + a));
  vf large = 1.0f - 2.0f / (ke_scale(1.0f + e.tail, e.n) + 1.0f);
  return ke_copysign(ke_select(a < 0.6f, small, large), x);
}
KE_UNARY_COMPANIONS(ke_tanh, std::tanh(x))

// x^y through double precision: log2(m) = 2/ln 2 atanh(s), s = (m-1)/(m+1), m in [0.75, 1.5) (fit of
// (atanh(s)/s - 1)/s^2: 1.7e-15), then 2^t by a polynomial on |r| <= 0.5 (4.1e-11).
KE_INLINE vdd ke_pow_magnitude(vf a, vf y) {
  vi tiny = a < 0x1p-126f;
  vi bits = (vi)ke_select(tiny, a * 0x1p23f, a);
  vi k = (bits - 0x3f400000) >> 23;
  vdd m = __builtin_convertvector((vf)(bits - (k << 23)), vdd);
  vdd e = __builtin_convertvector(k - ke_select(tiny, ke_set1(23), ke_set1(0)), vdd);
  vdd s = (m - 1.0) / (m + 1.0), z = s * s;
  vdd p = 0x1.63f75e0da5a11p-4 * z + 0x1.72171543c4504p-4;
  p = p * z + 0x1.c72c2a8492e2ap-4;
  p = p * z + 0x1.24922dcad5fd9p-3;
  p = p * z + 0x1.999999c540bdep-3;
  p = p * z + 0x1.5555555549bf0p-2;
  vdd t = __builtin_convertvector(y, vdd) * (e + 0x1.71547652b82fep+1 * (s + s * z * p));
  t = t < 300.0 ? t : 300.0 - (vdd){};
  t = t > -300.0 ? t : -300.0 - (vdd){};
  vdd shifted = t + 0x1.8p52, r = t - (shifted - 0x1.8p52);
  vdd q = 0x1.00f8cab868ef8p-16 * r + 0x1.446dea5cb1ba1p-13;
  q = q * r + 0x1.5d8713d37246cp-10;
  q = q * r + 0x1.3b29d6ecbbc01p-7;
  q = q * r + 0x1.c6b08e08c3d3ap-5;
  q = q * r + 0x1.ebfbe0ac31545p-3;
  q = q * r + 0x1.62e42fef6bf23p-1;
  q = q * r + 0x1.ffffffffa59d0p-1;
  typedef int64_t vll __attribute__((vector_size(2 * KE_VB)));
  return (vdd)((vll)q + ((vll)shifted << 52));
}
KE_INLINE vf ke_pow(vf x, vf y) {
  const vf inf = ke_set1(__builtin_inff()), zero = ke_set1(0.0f), one = ke_set1(1.0f);
  vf a = ke_abs(x), h = 0.5f * y;
  vi integral = ke_trunc(y) == y;
  vi odd = integral & (ke_trunc(h) != h) & (ke_abs(y) < 0x1p24f);
  vf r = __builtin_convertvector(ke_pow_magnitude(a, y), vf);
  vi grows = (a > 1.0f) == (y > 0.0f);  // where an infinite exponent, or an infinite or zero base, leads to infinity
  r = ke_select((a == inf) | (a == 0.0f) | (ke_abs(y) == inf), ke_select(grows, inf, zero), r);
  r = ke_select((x < 0.0f) & ~integral & (a < inf), ke_set1(__builtin_nanf("")), r);
  vi flips = odd & ((vi)x < 0);
  r = ke_select(flips, -r, r);
  r = ke_select((x != x) | (y != y), x + y, r);
  return ke_select((y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (ke_abs(y) == inf)), one, r);
}
KE_INLINE float ke_pow(float x, float y) { return ke_pow(ke_set1(x), ke_set1(y))[0]; }
KE_INLINE double ke_pow(double x, double y) { return std::pow(x, y); }
KE_INLINE vd ke_pow(vd x, vd y) {
  for (int i = 0; i < KE_WD; ++i) x[i] = std::pow(x[i], y[i]);
  return x;
}
