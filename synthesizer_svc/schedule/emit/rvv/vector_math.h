/* Mathematics on vectors of 32-bit floats, as a template: LM is a register group (m1 m2 m4 m8), VF VI VB its vectors of
 * floats and of integers, and its masks. A kernel gets the functions that it uses, blocks being separated by blank lines.
 * Overloaded intrinsics: an operand in the place of a vector may be a scalar. Coefficients: fits of this project. */

/* c1 r + c0. Coefficients stay scalars: as vectors they would be kept in registers that there are not. */
KE_INLINE VF ke_pair_LM(VF r, float c1, float c0, size_t vl) {
  return __riscv_vfadd(__riscv_vfmul(r, c1, vl), c0, vl);
}

/* p r + c */
KE_INLINE VF ke_horner_LM(VF p, VF r, float c, size_t vl) {
  return __riscv_vfadd(__riscv_vfmul(p, r, vl), c, vl);
}

/* x within [low, high]; a NaN stays one. */
KE_INLINE VF ke_clamp_LM(VF x, float low, float high, size_t vl) {
  x = __riscv_vfmerge(x, low, __riscv_vmflt(x, low, vl), vl);
  return __riscv_vfmerge(x, high, __riscv_vmfgt(x, high, vl), vl);
}

/* exp(x) = (1 + tail) 2^n for |x| < 2^21 ln 2 or NaN. shifted: n + 127 in the low bits of a float in [2^23, 2^24).
 * x is reduced by n ln 2 in two parts, of which the first has 10 bits, so that n times it is exact. */
KE_INLINE VF ke_exp_tail_LM(VF x, VF *shifted, size_t vl) {
  *shifted = ke_pair_LM(x, 0x1.715476p0f, 0x1.8000fep23f, vl);
  VF n = __riscv_vfsub(*shifted, 0x1.8000fep23f, vl);
  VF r = __riscv_vfnmsac(x, 0x1.63p-1f, n, vl);
  r = __riscv_vfmacc(r, 0x1.bd0106p-13f, n, vl);
  VF s = __riscv_vfmul(r, r, vl);
  VF high = __riscv_vfmacc(ke_pair_LM(r, 0x1.123afep-7f, 0x1.5554bep-5f, vl), 0x1.6d7c9ep-10f, s, vl);
  VF q = __riscv_vfmadd(high, s, ke_pair_LM(r, 0x1.55549p-3f, 0.5f, vl), vl);
  return __riscv_vfmadd(q, s, r, vl);
}

/* exp for |x| <= 88.1 or NaN; below -87.7 it is 0. */
KE_INLINE VF ke_exp_bounded_LM(VF x, size_t vl) {
  VF shifted, tail = ke_exp_tail_LM(x, &shifted, vl);
  VF scale = __riscv_vreinterpret_f32LM(__riscv_vsll(__riscv_vreinterpret_u32LM(shifted), 23, vl));
  return __riscv_vfmadd(tail, scale, scale, vl);
}

/* exp of arguments at most 0 (softmax): their bits grow as they fall, and those of a NaN are below. */
KE_INLINE VF ke_exp_nonpositive_LM(VF x, size_t vl) {
  return ke_exp_bounded_LM(__riscv_vreinterpret_f32LM(__riscv_vminu(__riscv_vreinterpret_u32LM(x), 0xc2b03333u, vl)), vl);
}

/* The integer n of ke_exp_tail. */
KE_INLINE VI ke_exp_power_LM(VF shifted, size_t vl) {
  return __riscv_vsub(__riscv_vreinterpret_i32LM(shifted), 0x4b40007f, vl);
}

/* 2^n for n in [-126, 127] */
KE_INLINE VF ke_power_of_two_LM(VI n, size_t vl) {
  return __riscv_vreinterpret_f32LM(__riscv_vsll(__riscv_vadd(n, 127, vl), 23, vl));
}

KE_INLINE VF ke_exp_LM(VF x, size_t vl) {
  VF shifted, tail = ke_exp_tail_LM(ke_clamp_LM(x, -105.0f, 89.0f, vl), &shifted, vl);
  VI n = ke_exp_power_LM(shifted, vl), half = __riscv_vsra(n, 1, vl);
  VF first = ke_power_of_two_LM(half, vl), second = ke_power_of_two_LM(__riscv_vsub(n, half, vl), vl);
  return __riscv_vfmul(__riscv_vfmadd(tail, first, first, vl), second, vl);
}

KE_INLINE VF ke_expm1_LM(VF x, size_t vl) {
  VF shifted, tail = ke_exp_tail_LM(ke_clamp_LM(x, -20.0f, 89.0f, vl), &shifted, vl);
  VF half = ke_power_of_two_LM(__riscv_vsub(ke_exp_power_LM(shifted, vl), 1, vl), vl);
  VF y = __riscv_vfmul(__riscv_vfmadd(tail, half, __riscv_vfsub(half, 0.5f, vl), vl), 2.0f, vl);
  return __riscv_vmerge(y, x, __riscv_vmflt(__riscv_vfabs(x, vl), 0x1p-25f, vl), vl);
}

KE_INLINE VF ke_sigmoid_LM(VF x, size_t vl) {
  VF e = ke_exp_bounded_LM(ke_clamp_LM(__riscv_vfneg(x, vl), -88.0f, 88.0f, vl), vl);
  return __riscv_vfrdiv(__riscv_vfadd(e, 1.0f, vl), 1.0f, vl);
}

/* |x| < 0.6: x + x^3 P(x^2); beyond: 1 - 2 / (exp(2|x|) + 1). */
KE_INLINE VF ke_tanh_LM(VF x, size_t vl) {
  VF a = __riscv_vfabs(x, vl), z = __riscv_vfmul(x, x, vl);
  VF p = ke_pair_LM(z, -0x1.828776p-8f, 0x1.54c3c2p-6f, vl);
  p = ke_horner_LM(p, z, -0x1.b89abap-5f, vl);
  p = ke_horner_LM(p, z, 0x1.1109bep-3f, vl);
  p = ke_horner_LM(p, z, -0x1.55553ep-2f, vl);
  VF small = __riscv_vfmadd(p, __riscv_vfmul(x, z, vl), x, vl);
  VF twice = __riscv_vfadd(a, a, vl);
  VF e = ke_exp_bounded_LM(__riscv_vfmerge(twice, 20.0f, __riscv_vmfgt(twice, 20.0f, vl), vl), vl);
  VF large = __riscv_vfrsub(__riscv_vfrdiv(__riscv_vfadd(e, 1.0f, vl), 2.0f, vl), 1.0f, vl);
  return __riscv_vfsgnj(__riscv_vmerge(large, small, __riscv_vmflt(a, 0.6f, vl), vl), x, vl);
}

/* |x| < 1: x + x P(x^2); beyond: 1 - exp(Q(|x|)), Q fitted to log(erfc). From 4 on erf rounds to 1. */
KE_INLINE VF ke_erf_LM(VF x, size_t vl) {
  VF a = __riscv_vfabs(x, vl), z = __riscv_vfmul(x, x, vl);
  VF p = ke_pair_LM(z, 0x1.4771fep-14f, -0x1.a3515ep-11f, vl);
  p = ke_horner_LM(p, z, 0x1.53f224p-8f, vl);
  p = ke_horner_LM(p, z, -0x1.b7f71ap-6f, vl);
  p = ke_horner_LM(p, z, 0x1.ce2ce6p-4f, vl);
  p = ke_horner_LM(p, z, -0x1.81273ep-2f, vl);
  p = ke_horner_LM(p, z, 0x1.06eba8p-3f, vl);
  VF small = __riscv_vfmadd(p, x, x, vl);
  VF b = __riscv_vfmerge(a, 4.0f, __riscv_vmfgt(a, 4.0f, vl), vl);
  VF q = ke_pair_LM(b, 0x1.8c0348p-13f, -0x1.859d2p-9f, vl);
  q = ke_horner_LM(q, b, 0x1.6779bep-6f, vl);
  q = ke_horner_LM(q, b, -0x1.a73ae4p-4f, vl);
  q = ke_horner_LM(q, b, -0x1.469896p-1f, vl);
  q = ke_horner_LM(q, b, -0x1.20938ep+0f, vl);
  q = ke_horner_LM(q, b, -0x1.3b05b8p-12f, vl);
  VF large = __riscv_vfrsub(ke_exp_bounded_LM(q, vl), 1.0f, vl);
  return __riscv_vmerge(__riscv_vfsgnj(large, x, vl), small, __riscv_vmflt(a, 1.0f, vl), vl);
}

/* x = 2^k (1 + f), f in [-0.25, 0.5), for normal positive x. */
KE_INLINE VF ke_log_parts_LM(VF x, VF *k, size_t vl) {
  VI bits = __riscv_vreinterpret_i32LM(x);
  VI n = __riscv_vsra(__riscv_vsub(bits, 0x3f400000, vl), 23, vl);
  *k = __riscv_vfcvt_f(n, vl);
  return __riscv_vfsub(__riscv_vreinterpret_f32LM(__riscv_vsub(bits, __riscv_vsll(n, 23, vl), vl)), 1.0f, vl);
}

/* k ln 2 + log(1 + f) */
KE_INLINE VF ke_log_join_LM(VF k, VF f, size_t vl) {
  VF p = ke_pair_LM(f, -0x1.718f38p-5f, 0x1.acce3ep-4f, vl);
  p = ke_horner_LM(p, f, -0x1.0d989cp-3f, vl);
  p = ke_horner_LM(p, f, 0x1.28841ap-3f, vl);
  p = ke_horner_LM(p, f, -0x1.54ee38p-3f, vl);
  p = ke_horner_LM(p, f, 0x1.996978p-3f, vl);
  p = ke_horner_LM(p, f, -0x1.000046p-2f, vl);
  p = ke_horner_LM(p, f, 0x1.5555a4p-2f, vl);
  VF s = __riscv_vfmul(f, f, vl);
  VF tail = __riscv_vfmadd(p, __riscv_vfmul(s, f, vl), __riscv_vfmul(s, -0.5f, vl), vl);
  VF low = __riscv_vfadd(__riscv_vfmacc(tail, 0x1.7f7d1cp-20f, k, vl), f, vl);
  return __riscv_vfmacc(low, 0x1.62e4p-1f, k, vl);
}

/* y, but the logarithm of 0, of negative numbers, of infinity and of NaN. */
KE_INLINE VF ke_log_special_LM(VF x, VF y, float zero, size_t vl) {
  y = __riscv_vmerge(x, y, __riscv_vmflt(x, __builtin_inff(), vl), vl);
  y = __riscv_vfmerge(y, -__builtin_inff(), __riscv_vmfeq(x, zero, vl), vl);
  return __riscv_vfmerge(y, __builtin_nanf(""), __riscv_vmflt(x, zero, vl), vl);
}

KE_INLINE VF ke_log_LM(VF x, size_t vl) {
  VB tiny = __riscv_vmflt(x, 0x1p-126f, vl);
  VF k, f = ke_log_parts_LM(__riscv_vmerge(x, __riscv_vfmul(x, 0x1p23f, vl), tiny, vl), &k, vl);
  k = __riscv_vmerge(k, __riscv_vfsub(k, 23.0f, vl), tiny, vl);
  return ke_log_special_LM(x, ke_log_join_LM(k, f, vl), 0.0f, vl);
}

/* With u = 1 + x = 2^k (1 + f), f is x 2^-k + (2^-k - 1): no digit of x is lost. */
KE_INLINE VF ke_log1p_LM(VF x, size_t vl) {
  VF u = __riscv_vfadd(x, 1.0f, vl), k, m = ke_log_parts_LM(u, &k, vl);
  VI n = __riscv_vmin(__riscv_vfcvt_x(k, vl), 100, vl);
  VF s = ke_power_of_two_LM(__riscv_vneg(n, vl), vl);
  VF f = __riscv_vfmadd(s, x, __riscv_vfsub(s, 1.0f, vl), vl);
  f = __riscv_vmerge(m, f, __riscv_vmflt(k, 100.0f, vl), vl);
  VF y = ke_log_join_LM(k, f, vl);
  y = __riscv_vmerge(y, x, __riscv_vmflt(__riscv_vfabs(x, vl), 0x1p-25f, vl), vl);
  return ke_log_special_LM(x, y, -1.0f, vl);
}

KE_INLINE VF ke_rsqrt_LM(VF x, size_t vl) {
  return __riscv_vfrdiv(__riscv_vfsqrt(x, vl), 1.0f, vl);
}

/* NaN when either is. */
KE_INLINE VF ke_max_LM(VF a, VF b, size_t vl) {
  return __riscv_vmerge(b, a, __riscv_vmor(__riscv_vmfge(a, b, vl), __riscv_vmfne(a, a, vl), vl), vl);
}

KE_INLINE VF ke_min_LM(VF a, VF b, size_t vl) {
  return __riscv_vmerge(b, a, __riscv_vmor(__riscv_vmfle(a, b, vl), __riscv_vmfne(a, a, vl), vl), vl);
}

/* What was rounded to an integer keeps its sign; from 2^23 on everything is one. */
KE_INLINE VF ke_whole_LM(VF x, VI n, size_t vl) {
  VF y = __riscv_vfsgnj(__riscv_vfcvt_f(n, vl), x, vl);
  return __riscv_vmerge(x, y, __riscv_vmflt(__riscv_vfabs(x, vl), 0x1p23f, vl), vl);
}

KE_INLINE VF ke_round_LM(VF x, size_t vl) {
  return ke_whole_LM(x, __riscv_vfcvt_x(x, vl), vl);
}

KE_INLINE VF ke_trunc_LM(VF x, size_t vl) {
  return ke_whole_LM(x, __riscv_vfcvt_rtz_x(x, vl), vl);
}

KE_INLINE VF ke_floor_LM(VF x, size_t vl) {
  VF y = ke_round_LM(x, vl);
  return __riscv_vmerge(y, __riscv_vfsub(y, 1.0f, vl), __riscv_vmfgt(y, x, vl), vl);
}

KE_INLINE VF ke_ceil_LM(VF x, size_t vl) {
  VF y = ke_round_LM(x, vl), z = __riscv_vfsgnj(__riscv_vfadd(y, 1.0f, vl), x, vl);
  return __riscv_vmerge(y, z, __riscv_vmflt(y, x, vl), vl);
}

/* Sums of all lanes of a group: of its halves first, which rounds less than lane after lane. */
KE_INLINE float ke_fold_sum_m1(vfloat32m1_t v, size_t vl) {
  return __riscv_vfmv_f(__riscv_vfredusum(v, __riscv_vfmv_s_f_f32m1(0.0f, 1), vl));
}

/* HM is half of LM. */
KE_INLINE float ke_fold_sum_LM(VF v, size_t vl) {
  return ke_fold_sum_HM(__riscv_vfadd(__riscv_vget_f32HM(v, 0), __riscv_vget_f32HM(v, 1), vl / 2), vl / 2);
}

KE_INLINE float ke_fold_max_raw_LM(VF v, size_t vl) {
  vfloat32m1_t least = __riscv_vfmv_s_f_f32m1(-__builtin_inff(), 1);
  return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmax_vs_f32LM_f32m1(v, least, vl));
}

KE_INLINE float ke_fold_max_LM(VF v, size_t vl) {
  return __riscv_vcpop(__riscv_vmfne(v, v, vl), vl) ? __builtin_nanf("") : ke_fold_max_raw_LM(v, vl);
}

KE_INLINE float ke_fold_min_LM(VF v, size_t vl) {
  vfloat32m1_t most = __riscv_vfmv_s_f_f32m1(__builtin_inff(), 1);
  float least = __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmin_vs_f32LM_f32m1(v, most, vl));
  return __riscv_vcpop(__riscv_vmfne(v, v, vl), vl) ? __builtin_nanf("") : least;
}

/* vl is a power of two. */
KE_INLINE float ke_fold_prod_LM(VF v, size_t vl) {
  for (size_t n = vl / 2; n > 0; n /= 2) v = __riscv_vfmul(v, __riscv_vslidedown(v, n, n), n);
  return __riscv_vfmv_f(v);
}

/* Softmax's statistics of every lane: the greatest so far, and the sum of exponentials relative to it. */
KE_INLINE VF ke_online_LM(VF x, VF *top, VF sum, size_t vl) {
  VF new_top = __riscv_vfmax_tu(*top, *top, x, vl);
  VF pivot = __riscv_vfmax(new_top, -0x1.fffffep127f, vl);
  VF kept = ke_exp_nonpositive_LM(__riscv_vfsub(*top, pivot, vl), vl);
  VF more = ke_exp_nonpositive_LM(__riscv_vfsub(x, pivot, vl), vl);
  *top = new_top;
  return __riscv_vfmadd_tu(sum, kept, more, vl);
}

/* Their sum over the lanes, relative to the greatest of all, which must be finite or -infinity. */
KE_INLINE float ke_online_fold_LM(VF top, VF sum, float greatest, size_t vl) {
  float pivot = greatest < -0x1.fffffep127f ? -0x1.fffffep127f : greatest;
  VF scale = ke_exp_nonpositive_LM(__riscv_vfsub(top, pivot, vl), vl);
  return ke_fold_sum_LM(__riscv_vfmul(sum, scale, vl), vl);
}
