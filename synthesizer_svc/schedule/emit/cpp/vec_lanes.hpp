// Across lanes: reductions in a fixed order and prefix sums.
#pragma once
#include "vec_arith.hpp"

// Reductions fold the upper half onto the lower half until one lane is left: the same order on every run.
template <class V, class I, class Combine>
KE_INLINE auto ke_fold(V v, I iota, Combine combine) {
  constexpr int lanes = (int)(sizeof(V) / sizeof(v[0]));
#pragma GCC unroll 4
  for (int half = lanes / 2; half > 0; half /= 2) v = combine(v, __builtin_shuffle(v, (iota + half) & (lanes - 1)));
  return v[0];
}
#define KE_FOLD(NAME, V, T, IOTA, COMBINE) \
  KE_INLINE T NAME(V v) { return ke_fold(v, IOTA, [](V a, V b) __attribute__((always_inline)) { return COMBINE; }); }
KE_FOLD(ke_hsum, vf, float, ke_iota(), a + b)
KE_FOLD(ke_hprod, vf, float, ke_iota(), a * b)
KE_FOLD(ke_hmax, vf, float, ke_iota(), ke_max(a, b))
KE_FOLD(ke_hmin, vf, float, ke_iota(), ke_min(a, b))
KE_FOLD(ke_hmax_raw, vf, float, ke_iota(), ke_max_raw(a, b))
KE_FOLD(ke_hmin_raw, vf, float, ke_iota(), ke_min_raw(a, b))
KE_FOLD(ke_hsum, vd, double, ke_iota64(), a + b)
KE_FOLD(ke_hprod, vd, double, ke_iota64(), a * b)
KE_FOLD(ke_hmax, vd, double, ke_iota64(), ke_max(a, b))
KE_FOLD(ke_hmin, vd, double, ke_iota64(), ke_min(a, b))
KE_FOLD(ke_hsum, vi, int32_t, ke_iota(), (vi)((vu)a + (vu)b))
KE_FOLD(ke_hmax, vi, int32_t, ke_iota(), ke_max(a, b))
KE_FOLD(ke_hmin, vi, int32_t, ke_iota(), ke_min(a, b))
KE_FOLD(ke_hsum, vl, int64_t, ke_iota64(), a + b)
KE_FOLD(ke_hprod, vl, int64_t, ke_iota64(), a * b)
KE_FOLD(ke_hmax, vl, int64_t, ke_iota64(), ke_max(a, b))
KE_FOLD(ke_hmin, vl, int64_t, ke_iota64(), ke_min(a, b))
#undef KE_FOLD

// Lanes shifted up by `by`, zeros entering at lane 0.
template <int by>
KE_INLINE vf ke_shift_up(vf v) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_alignr_epi32((__m512i)v, _mm512_setzero_si512(), 16 - by);
#else
  return __builtin_shuffle((vf){}, v, ke_iota() + (KE_W - by));
#endif
}
template <int by>
KE_INLINE vd ke_shift_up(vd v) {
  return __builtin_shuffle((vd){}, v, ke_iota64() + (KE_WD - by));
}
// Inclusive prefix sum of the lanes, in log2(lanes) steps.
KE_INLINE vf ke_scan_sum(vf v) {
  v += ke_shift_up<1>(v);
  v += ke_shift_up<2>(v);
  if constexpr (KE_W > 4) v += ke_shift_up<4 % KE_W>(v);
  if constexpr (KE_W > 8) v += ke_shift_up<8 % KE_W>(v);
  return v;
}
KE_INLINE vd ke_scan_sum(vd v) {
  v += ke_shift_up<1>(v);
  if constexpr (KE_WD > 2) v += ke_shift_up<2 % KE_WD>(v);
  if constexpr (KE_WD > 4) v += ke_shift_up<4 % KE_WD>(v);
  return v;
}
