// Elementary operations: fused multiply-add, selection, extrema, roots, rounding.
#pragma once
#include "vec_types.hpp"

// a * b + c: one rounding where the processor has FMA, two where not.
KE_INLINE vf ke_fma(vf a, vf b, vf c) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif KE_VECTOR_BITS == 256 && defined(__FMA__)
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
KE_INLINE vd ke_fma(vd a, vd b, vd c) {
#if KE_VECTOR_BITS == 512
  return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif KE_VECTOR_BITS == 256 && defined(__FMA__)
  return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}
KE_INLINE vf ke_fma(vf a, float b, vf c) { return ke_fma(a, ke_set1(b), c); }
KE_INLINE vf ke_fma(vf a, vf b, float c) { return ke_fma(a, b, ke_set1(c)); }
KE_INLINE float ke_fma(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
KE_INLINE double ke_fma(double a, double b, double c) {
#if defined(__FMA__)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

KE_INLINE vf ke_select(vi mask, vf a, vf b) { return mask ? a : b; }
KE_INLINE vd ke_select(vl mask, vd a, vd b) { return mask ? a : b; }
KE_INLINE vi ke_select(vi mask, vi a, vi b) { return mask ? a : b; }
KE_INLINE vl ke_select(vl mask, vl a, vl b) { return mask ? a : b; }
KE_INLINE float ke_select(bool mask, float a, float b) { return mask ? a : b; }
KE_INLINE double ke_select(bool mask, double a, double b) { return mask ? a : b; }

KE_INLINE vf ke_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }
KE_INLINE vd ke_abs(vd x) { return (vd)((vl)x & 0x7fffffffffffffffLL); }
KE_INLINE float ke_abs(float x) { return __builtin_fabsf(x); }
KE_INLINE double ke_abs(double x) { return __builtin_fabs(x); }
KE_INLINE vf ke_copysign(vf x, vf sign) { return (vf)(((vi)x & 0x7fffffff) | ((vi)sign & (int32_t)0x80000000)); }

// Of two operands the larger (smaller); `b` when either is NaN. One instruction.
KE_INLINE vf ke_max_raw(vf a, vf b) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif KE_VECTOR_BITS == 256
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}
KE_INLINE vf ke_min_raw(vf a, vf b) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif KE_VECTOR_BITS == 256
  return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return a < b ? a : b;
#endif
}
KE_INLINE vd ke_max_raw(vd a, vd b) { return a > b ? a : b; }
KE_INLINE vd ke_min_raw(vd a, vd b) { return a < b ? a : b; }
KE_INLINE float ke_max_raw(float a, float b) { return a > b ? a : b; }
KE_INLINE float ke_min_raw(float a, float b) { return a < b ? a : b; }
KE_INLINE double ke_max_raw(double a, double b) { return a > b ? a : b; }
KE_INLINE double ke_min_raw(double a, double b) { return a < b ? a : b; }
// NaN when either operand is NaN.
KE_INLINE vf ke_max(vf a, vf b) { return (a != a) ? a : ke_max_raw(a, b); }
KE_INLINE vf ke_min(vf a, vf b) { return (a != a) ? a : ke_min_raw(a, b); }
KE_INLINE vd ke_max(vd a, vd b) { return (a != a) ? a : ke_max_raw(a, b); }
KE_INLINE vd ke_min(vd a, vd b) { return (a != a) ? a : ke_min_raw(a, b); }
KE_INLINE float ke_max(float a, float b) { return a != a ? a : ke_max_raw(a, b); }
KE_INLINE float ke_min(float a, float b) { return a != a ? a : ke_min_raw(a, b); }
KE_INLINE double ke_max(double a, double b) { return a != a ? a : ke_max_raw(a, b); }
KE_INLINE double ke_min(double a, double b) { return a != a ? a : ke_min_raw(a, b); }
KE_INLINE vi ke_max(vi a, vi b) { return a > b ? a : b; }
KE_INLINE vi ke_min(vi a, vi b) { return a < b ? a : b; }
KE_INLINE vl ke_max(vl a, vl b) { return a > b ? a : b; }
KE_INLINE vl ke_min(vl a, vl b) { return a < b ? a : b; }

KE_INLINE vf ke_sqrt(vf x) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_sqrt_ps((__m512)x);
#elif KE_VECTOR_BITS == 256
  return (vf)_mm256_sqrt_ps((__m256)x);
#else
  return (vf)_mm_sqrt_ps((__m128)x);
#endif
}
KE_INLINE vd ke_sqrt(vd x) {
#if KE_VECTOR_BITS == 512
  return (vd)_mm512_sqrt_pd((__m512d)x);
#elif KE_VECTOR_BITS == 256
  return (vd)_mm256_sqrt_pd((__m256d)x);
#else
  return (vd)_mm_sqrt_pd((__m128d)x);
#endif
}
KE_INLINE float ke_sqrt(float x) { return std::sqrt(x); }
KE_INLINE double ke_sqrt(double x) { return std::sqrt(x); }
KE_INLINE vf ke_rsqrt(vf x) { return 1.0f / ke_sqrt(x); }
KE_INLINE vd ke_rsqrt(vd x) { return 1.0 / ke_sqrt(x); }
KE_INLINE float ke_rsqrt(float x) { return 1.0f / std::sqrt(x); }
KE_INLINE double ke_rsqrt(double x) { return 1.0 / std::sqrt(x); }

// Rounding to integers: floor, ceil, trunc, and round to nearest even (torch.round).
#if KE_VECTOR_BITS == 512
#define KE_ROUNDING(NAME, IMM, LIBM)                                                      \
  KE_INLINE vf NAME(vf x) { return (vf)_mm512_roundscale_ps((__m512)x, IMM); }            \
  KE_INLINE vd NAME(vd x) { return (vd)_mm512_roundscale_pd((__m512d)x, IMM); }           \
  KE_INLINE float NAME(float x) { return LIBM(x); }                                       \
  KE_INLINE double NAME(double x) { return LIBM(x); }
#elif KE_VECTOR_BITS == 256
#define KE_ROUNDING(NAME, IMM, LIBM)                                                      \
  KE_INLINE vf NAME(vf x) { return (vf)_mm256_round_ps((__m256)x, IMM); }                 \
  KE_INLINE vd NAME(vd x) { return (vd)_mm256_round_pd((__m256d)x, IMM); }                \
  KE_INLINE float NAME(float x) { return LIBM(x); }                                       \
  KE_INLINE double NAME(double x) { return LIBM(x); }
#else
#define KE_ROUNDING(NAME, IMM, LIBM)                                                      \
  KE_INLINE vf NAME(vf x) { for (int i = 0; i < KE_W; ++i) x[i] = LIBM(x[i]); return x; } \
  KE_INLINE vd NAME(vd x) { for (int i = 0; i < KE_WD; ++i) x[i] = LIBM(x[i]); return x; } \
  KE_INLINE float NAME(float x) { return LIBM(x); }                                       \
  KE_INLINE double NAME(double x) { return LIBM(x); }
#endif
KE_ROUNDING(ke_round, 8, std::nearbyint)
KE_ROUNDING(ke_floor, 9, std::floor)
KE_ROUNDING(ke_ceil, 10, std::ceil)
KE_ROUNDING(ke_trunc, 11, std::trunc)
#undef KE_ROUNDING
