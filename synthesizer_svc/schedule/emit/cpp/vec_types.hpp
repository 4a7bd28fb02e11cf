// Vector types, construction, whole, partial, strided and gathered loads and stores.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef KE_VECTOR_BITS
#error "define KE_VECTOR_BITS as 512, 256 or 128"
#endif
#if KE_VECTOR_BITS == 512 && !defined(__AVX512F__)
#error "KE_VECTOR_BITS 512 needs AVX-512"
#elif KE_VECTOR_BITS == 256 && !defined(__AVX2__)
#error "KE_VECTOR_BITS 256 needs AVX2"
#endif

#pragma GCC diagnostic ignored "-Wpsabi"  // nothing here is called across a binary interface
#define KE_INLINE static inline __attribute__((always_inline))
#define KE_VB (KE_VECTOR_BITS / 8)

typedef float vf __attribute__((vector_size(KE_VB)));
typedef double vd __attribute__((vector_size(KE_VB)));
typedef int32_t vi __attribute__((vector_size(KE_VB)));
typedef uint32_t vu __attribute__((vector_size(KE_VB)));
typedef int64_t vl __attribute__((vector_size(KE_VB)));
typedef double vdd __attribute__((vector_size(2 * KE_VB)));  // KE_W doubles, for work in double precision

constexpr int KE_W = KE_VB / 4;   // lanes of vf, vi
constexpr int KE_WD = KE_VB / 8;  // lanes of vd, vl

// ---------------------------------------------------------------- construction, loads and stores
KE_INLINE vf ke_set1(float x) { return x - (vf){}; }
KE_INLINE vd ke_set1(double x) { return x - (vd){}; }
KE_INLINE vi ke_set1(int32_t x) { return x - (vi){}; }
KE_INLINE vl ke_set1(int64_t x) { return x - (vl){}; }

template <class V>
KE_INLINE V ke_iota_of() {
  V v;
  for (int i = 0; i < (int)(sizeof(V) / sizeof(v[0])); ++i) v[i] = i;
  return v;
}
KE_INLINE vi ke_iota() { return ke_iota_of<vi>(); }
KE_INLINE vl ke_iota64() { return ke_iota_of<vl>(); }

#define KE_LOAD_STORE(V, T)                                                   \
  KE_INLINE V ke_load(const T* p) { V v; memcpy(&v, p, sizeof v); return v; } \
  KE_INLINE void ke_store(T* p, V v) { memcpy(p, &v, sizeof v); }
KE_LOAD_STORE(vf, float)
KE_LOAD_STORE(vd, double)
KE_LOAD_STORE(vi, int32_t)
KE_LOAD_STORE(vl, int64_t)
#undef KE_LOAD_STORE

// The leading n lanes (0 <= n <= lanes); the rest of a load is zero, the rest of memory is not touched.
#if KE_VECTOR_BITS == 512
KE_INLINE __mmask16 ke_mask16(int n) { return (__mmask16)((1u << n) - 1u); }
KE_INLINE __mmask8 ke_mask8(int n) { return (__mmask8)((1u << n) - 1u); }
KE_INLINE vf ke_load_part(const float* p, int n) { return (vf)_mm512_maskz_loadu_ps(ke_mask16(n), p); }
KE_INLINE vd ke_load_part(const double* p, int n) { return (vd)_mm512_maskz_loadu_pd(ke_mask8(n), p); }
KE_INLINE vi ke_load_part(const int32_t* p, int n) { return (vi)_mm512_maskz_loadu_epi32(ke_mask16(n), p); }
KE_INLINE vl ke_load_part(const int64_t* p, int n) { return (vl)_mm512_maskz_loadu_epi64(ke_mask8(n), p); }
KE_INLINE void ke_store_part(float* p, vf v, int n) { _mm512_mask_storeu_ps(p, ke_mask16(n), (__m512)v); }
KE_INLINE void ke_store_part(double* p, vd v, int n) { _mm512_mask_storeu_pd(p, ke_mask8(n), (__m512d)v); }
KE_INLINE void ke_store_part(int32_t* p, vi v, int n) { _mm512_mask_storeu_epi32(p, ke_mask16(n), (__m512i)v); }
KE_INLINE void ke_store_part(int64_t* p, vl v, int n) { _mm512_mask_storeu_epi64(p, ke_mask8(n), (__m512i)v); }
#elif KE_VECTOR_BITS == 256
KE_INLINE __m256i ke_mask32(int n) { return (__m256i)(ke_iota() < n); }
KE_INLINE __m256i ke_mask64(int n) { return (__m256i)(ke_iota64() < (int64_t)n); }
KE_INLINE vf ke_load_part(const float* p, int n) { return (vf)_mm256_maskload_ps(p, ke_mask32(n)); }
KE_INLINE vd ke_load_part(const double* p, int n) { return (vd)_mm256_maskload_pd(p, ke_mask64(n)); }
KE_INLINE vi ke_load_part(const int32_t* p, int n) { return (vi)_mm256_maskload_epi32(p, ke_mask32(n)); }
KE_INLINE vl ke_load_part(const int64_t* p, int n) {
  return (vl)_mm256_maskload_epi64((const long long*)p, ke_mask64(n));
}
KE_INLINE void ke_store_part(float* p, vf v, int n) { _mm256_maskstore_ps(p, ke_mask32(n), (__m256)v); }
KE_INLINE void ke_store_part(double* p, vd v, int n) { _mm256_maskstore_pd(p, ke_mask64(n), (__m256d)v); }
KE_INLINE void ke_store_part(int32_t* p, vi v, int n) { _mm256_maskstore_epi32(p, ke_mask32(n), (__m256i)v); }
KE_INLINE void ke_store_part(int64_t* p, vl v, int n) {
  _mm256_maskstore_epi64((long long*)p, ke_mask64(n), (__m256i)v);
}
#else
#define KE_PART(V, T)                                                                              \
  KE_INLINE V ke_load_part(const T* p, int n) { V v = {}; for (int i = 0; i < n; ++i) v[i] = p[i]; return v; } \
  KE_INLINE void ke_store_part(T* p, V v, int n) { for (int i = 0; i < n; ++i) p[i] = v[i]; }
KE_PART(vf, float)
KE_PART(vd, double)
KE_PART(vi, int32_t)
KE_PART(vl, int64_t)
#undef KE_PART
#endif

// Lanes p[i * stride], the leading n of them.
#define KE_STRIDED(V, T)                                                                                       \
  KE_INLINE V ke_load_strided(const T* p, int64_t stride, int n = (int)(sizeof(V) / sizeof(T))) {              \
    V v = {};                                                                                                  \
    for (int i = 0; i < n; ++i) v[i] = p[i * stride];                                                          \
    return v;                                                                                                  \
  }                                                                                                            \
  KE_INLINE void ke_store_strided(T* p, int64_t stride, V v, int n = (int)(sizeof(V) / sizeof(T))) {           \
    for (int i = 0; i < n; ++i) p[i * stride] = v[i];                                                          \
  }
KE_STRIDED(vf, float)
KE_STRIDED(vd, double)
KE_STRIDED(vi, int32_t)
KE_STRIDED(vl, int64_t)
#undef KE_STRIDED

// Lanes p[idx[i]].
KE_INLINE vf ke_gather(const float* p, vi idx) {
#if KE_VECTOR_BITS == 512
  return (vf)_mm512_i32gather_ps((__m512i)idx, p, 4);
#elif KE_VECTOR_BITS == 256
  return (vf)_mm256_i32gather_ps(p, (__m256i)idx, 4);
#else
  vf v;
  for (int i = 0; i < KE_W; ++i) v[i] = p[idx[i]];
  return v;
#endif
}
KE_INLINE vd ke_gather(const double* p, vl idx) {
  vd v;
  for (int i = 0; i < KE_WD; ++i) v[i] = p[idx[i]];
  return v;
}
