// erf by table, where a register holds 16 entries and one instruction looks them up (AVX-512).
//
// erf(x)/x is even and smooth: 3.9 |x| = i + t, i the nearest integer and |t| <= 1/2, and erf(x)/x is a polynomial of
// degree 5 in t whose coefficients depend on i, good to 2.8e-9 of erf; the constant one is in two parts. From 3.97 on
// erf rounds to 1.
#pragma once
#include "vec_arith.hpp"

#if KE_VECTOR_BITS == 512
// clang-format off
alignas(64) static const float ke_erf_table[7][16] = {
    {0x1.20dd76p+0f, 0x1.1aa84cp+0f, 0x1.096beap+0f, 0x1.e174c6p-1f,
     0x1.a9dac4p-1f, 0x1.737a5p-1f, 0x1.42f4f6p-1f, 0x1.1a1474p-1f,
     0x1.f157c4p-2f, 0x1.bb3ec2p-2f, 0x1.8f3ec2p-2f, 0x1.6b07ccp-2f,
     0x1.4ccba6p-2f, 0x1.333302p-2f, 0x1.1d41cep-2f, 0x1.0a3d7p-2f},
    {-0x1.f72f44p-25f, -0x1.393b84p-26f, 0x1.544718p-26f, 0x1.88a58ep-26f,
     0x1.00f458p-27f, -0x1.f95964p-28f, -0x1.6726c8p-28f, -0x1.2b385ep-27f,
     -0x1.08db0ep-27f, 0x1.2e9534p-27f, -0x1.117888p-27f, -0x1.7cea34p-27f,
     0x1.5a66e4p-28f, 0x1.9aa96ap-27f, -0x1.378c46p-27f, 0x1.1261ecp-29f},
    {-0x1.1a5668p-27f, -0x1.858b62p-5f, -0x1.5ad812p-4f, -0x1.af57d2p-4f,
     -0x1.c02744p-4f, -0x1.9fb5bp-4f, -0x1.665fc8p-4f, -0x1.280994p-4f,
     -0x1.e02662p-5f, -0x1.84ff6cp-5f, -0x1.3e1b38p-5f, -0x1.07ba34p-5f,
     -0x1.bb9bb4p-6f, -0x1.7a11f6p-6f, -0x1.460134p-6f, -0x1.1bfd26p-6f},
    {-0x1.9527aap-6f, -0x1.670a36p-6f, -0x1.e16ca6p-7f, -0x1.85f99ap-8f,
     0x1.7a26d2p-10f, 0x1.869872p-8f, 0x1.f3be2ep-8f, 0x1.e2b4aap-8f,
     0x1.97cf1ap-8f, 0x1.421e4ep-8f, 0x1.ef673p-9f, 0x1.7c3146p-9f,
     0x1.26fc9ep-9f, 0x1.d106b4p-10f, 0x1.7486fep-10f, 0x1.2ee9f8p-10f},
    {-0x1.b8c2c4p-20f, 0x1.d8cc24p-10f, 0x1.744352p-9f, 0x1.71a4a4p-9f,
     0x1.092216p-9f, 0x1.04ad1ap-10f, 0x1.6914d4p-13f, -0x1.2af608p-12f,
     -0x1.c9f81ap-12f, -0x1.b55a9cp-12f, -0x1.605926p-12f, -0x1.082b04p-12f,
     -0x1.835036p-13f, -0x1.1ce094p-13f, -0x1.a94922p-14f, -0x1.4308dp-14f},
    {0x1.030d1ep-11f, 0x1.8c4b74p-12f, 0x1.0875bcp-13f, -0x1.fca88ap-14f,
     -0x1.05a082p-12f, -0x1.fdc09cp-13f, -0x1.5140cap-13f, -0x1.2b309cp-14f,
     -0x1.7c6422p-17f, 0x1.0972p-16f, 0x1.71188p-16f, 0x1.42321p-16f,
     0x1.e31efep-17f, 0x1.573a62p-17f, 0x1.e39f6cp-18f, 0x1.58907p-18f},
    {-0x1.7cb4bcp-17f, -0x1.51b83ep-15f, -0x1.ce152cp-15f, -0x1.4e05fap-15f,
     -0x1.6f8e82p-17f, 0x1.8025aep-17f, 0x1.3eb9aep-16f, 0x1.04464ap-16f,
     0x1.1ac2e8p-17f, 0x1.81274ap-19f, -0x1.13dedp-25f, -0x1.eef47p-21f,
     -0x1.fdeaaap-21f, -0x1.95efa4p-21f, -0x1.0a9f5ap-21f, -0x1.6c0d1cp-22f}};
// clang-format on

KE_INLINE vf ke_erf_entry(int power, vi index) {
  return (vf)_mm512_permutexvar_ps((__m512i)index, _mm512_load_ps(ke_erf_table[power]));
}
KE_INLINE vf ke_erf_by_table(vf x) {
  const float magic = 0x1.8p23f;  // sums with it hold the nearest integer in their low bits
  vf a = ke_min_raw(ke_set1(3.97f), ke_abs(x));
  vf shifted = ke_fma(a, 0x1.f33334p1f, ke_set1(magic));
  vf t = ke_fma(a, 0x1.f33334p1f, magic - shifted);
  vi index = (vi)shifted;
  vf q = ke_erf_entry(6, index);
  q = ke_fma(q, t, ke_erf_entry(5, index));
  q = ke_fma(q, t, ke_erf_entry(4, index));
  q = ke_fma(q, t, ke_erf_entry(3, index));
  q = ke_fma(q, t, ke_erf_entry(2, index));
  q = ke_fma(q, t, ke_erf_entry(1, index));
  vf c = ke_erf_entry(0, index), product = a * c;  // a (c + q), rounded once
  vf y = product + ke_fma(a, q, ke_fma(a, c, -product));
  return ke_copysign(y, x);
}
#endif
