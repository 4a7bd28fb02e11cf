// float16 and bfloat16: conversion, loads and stores.
#pragma once
#include "vec_types.hpp"

KE_INLINE float ke_f16_to_f32(uint16_t h) {
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu, bits;
  float f;
  if (magnitude >= 0x7c00u) {  // infinity, NaN (made quiet)
    bits = sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 | (magnitude > 0x7c00u ? 0x400000u : 0u);
    memcpy(&f, &bits, 4);
    return f;
  }
  bits = magnitude << 13;
  memcpy(&f, &bits, 4);
  f *= 0x1p112f;  // rebias, exactly, denormals included
  return sign ? -f : f;
#endif
}
KE_INLINE uint16_t ke_f32_to_f16(float f) {  // to nearest even
#if defined(__F16C__)
  return (uint16_t)_cvtss_sh(f, 0);
#else
  uint32_t bits;
  memcpy(&bits, &f, 4);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x1ffu));
  if (bits >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (bits < 0x38800000u) {  // denormal result: let the adder round
    float magnitude;
    memcpy(&magnitude, &bits, 4);
    magnitude += 0.5f;
    memcpy(&bits, &magnitude, 4);
    return (uint16_t)(sign | (bits - 0x3f000000u));
  }
  return (uint16_t)(sign | ((bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u) >> 13));
#endif
}
KE_INLINE float ke_bf16_to_f32(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
KE_INLINE uint16_t ke_f32_to_bf16(float f) {  // to nearest even; NaN stays NaN
  uint32_t bits;
  memcpy(&bits, &f, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
KE_INLINE vf ke_load_f16(const uint16_t* p) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
#elif KE_VECTOR_BITS == 256
  return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
#else
  vf v;
  for (int i = 0; i < KE_W; ++i) v[i] = ke_f16_to_f32(p[i]);
  return v;
#endif
}
KE_INLINE void ke_store_f16(uint16_t* p, vf v) {
#if KE_VECTOR_BITS == 512
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph((__m512)v, 0));
#elif KE_VECTOR_BITS == 256
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)v, 0));
#else
  for (int i = 0; i < KE_W; ++i) p[i] = ke_f32_to_f16(v[i]);
#endif
}
typedef uint16_t ke_vh __attribute__((vector_size(KE_VB / 2)));
KE_INLINE vf ke_load_bf16(const uint16_t* p) {
  ke_vh h;
  memcpy(&h, p, sizeof h);
  return (vf)(__builtin_convertvector(h, vu) << 16);
}
KE_INLINE void ke_store_bf16(uint16_t* p, vf v) {
  vu bits = (vu)v, rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  vu r = (v != v) ? (bits | 0x400000u) : rounded;
  ke_vh h = __builtin_convertvector(r >> 16, ke_vh);
  memcpy(p, &h, sizeof h);
}
#define KE_HALF_PART(NAME)                                                  \
  KE_INLINE vf ke_load_##NAME##_part(const uint16_t* p, int n) {            \
    uint16_t t[KE_W] = {};                                                  \
    for (int i = 0; i < n; ++i) t[i] = p[i];                                \
    return ke_load_##NAME(t);                                               \
  }                                                                         \
  KE_INLINE void ke_store_##NAME##_part(uint16_t* p, vf v, int n) {         \
    uint16_t t[KE_W];                                                       \
    ke_store_##NAME(t, v);                                                  \
    for (int i = 0; i < n; ++i) p[i] = t[i];                                \
  }
KE_HALF_PART(f16)
KE_HALF_PART(bf16)
#undef KE_HALF_PART
