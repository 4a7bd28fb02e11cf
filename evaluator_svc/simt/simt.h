// What ke_gpu.h means on a core: threads of a block are fibres, switched by simt.cpp. For g++ on x86-64.
#ifndef KE_SIMT_H
#define KE_SIMT_H

#include <cmath>
#include <cstdint>

#include "ke_abi.h"

#define __global__
#define __device__
#define __shared__ static __attribute__((section("ke_shared")))
#define __launch_bounds__(threads)
#ifndef KE_WARP
#error "KE_WARP is not given"
#endif
#define ke_launch ke_simt_candidate

extern "C" {
int ke_simt_candidate(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream);
struct KeSimtPlace { int thread, threads, block, blocks; };
extern struct KeSimtPlace ke_simt_place;
void ke_simt_barrier(int place, int line);
uint64_t ke_simt_exchange(uint64_t word, int lane);
void ke_simt_run(const char* name, int64_t blocks, int64_t threads, void (*body)(void*), void* arguments);
}

inline int ke_thread() { return ke_simt_place.thread; }
inline int ke_threads() { return ke_simt_place.threads; }
inline int ke_block() { return ke_simt_place.block; }
inline int ke_blocks() { return ke_simt_place.blocks; }
// A macro, so that each of the text's barriers is a place of its own, whatever the compiler makes of the calls.
#define ke_barrier() ke_simt_barrier(__COUNTER__, __LINE__)
inline unsigned ke_word(unsigned word, int lane) { return (unsigned)ke_simt_exchange(word, lane); }

template <class T> struct KeSame { typedef T type; };
template <class... P>
inline void ke_simt_start(const char* name, int64_t blocks, int64_t threads, void (*kernel)(P...),
                          typename KeSame<P>::type... given) {
  auto body = [=] { kernel(given...); };
  ke_simt_run(name, blocks, threads, [](void* it) { (*(decltype(body)*)it)(); }, &body);
}
#define KE_LAUNCH(kernel, blocks, threads, stream, ...) \
  ((void)(stream), ke_simt_start(#kernel, blocks, threads, kernel, ##__VA_ARGS__))

typedef _Float16 ke_f16;
struct ke_bf16 {
  uint16_t bits;
  ke_bf16() = default;
  explicit ke_bf16(float x) {
    uint32_t word;
    __builtin_memcpy(&word, &x, 4);
    bits = (uint16_t)(x != x ? (word >> 16) | 0x40 : (word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
};
inline float ke_float(ke_f16 x) { return (float)x; }
inline float ke_float(ke_bf16 x) {
  const uint32_t word = (uint32_t)x.bits << 16;
  float y;
  __builtin_memcpy(&y, &word, 4);
  return y;
}

#define KE_MATH1(name)                                          \
  inline float ke_##name(float x) { return std::name(x); }      \
  inline double ke_##name(double x) { return std::name(x); }
#define KE_MATH2(name)                                                      \
  inline float ke_##name(float x, float y) { return std::name(x, y); }      \
  inline double ke_##name(double x, double y) { return std::name(x, y); }
KE_MATH1(exp) KE_MATH1(exp2) KE_MATH1(expm1) KE_MATH1(log) KE_MATH1(log2) KE_MATH1(log10) KE_MATH1(log1p)
KE_MATH1(erf) KE_MATH1(erfc) KE_MATH1(tanh) KE_MATH1(sin) KE_MATH1(cos) KE_MATH1(tan) KE_MATH1(asin) KE_MATH1(acos)
KE_MATH1(atan) KE_MATH1(sinh) KE_MATH1(cosh) KE_MATH1(asinh) KE_MATH1(acosh) KE_MATH1(atanh) KE_MATH1(sqrt)
KE_MATH1(floor) KE_MATH1(ceil) KE_MATH1(trunc) KE_MATH1(rint) KE_MATH1(fabs)
KE_MATH2(pow) KE_MATH2(atan2) KE_MATH2(fmod)
inline float ke_rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline double ke_rsqrt(double x) { return 1.0 / std::sqrt(x); }

#endif
