/* ke_gpu.h: what one source needs to be a kernel in CUDA and in HIP.
 *
 * Grids and blocks have one dimension. A kernel is `extern "C" __global__ void __launch_bounds__(THREADS) name(...)`,
 * launched by KE_LAUNCH(name, blocks, threads, stream, arguments...); shared memory is declared (`__shared__ float s[64]`),
 * never given at launch. Where the device does not take a launch, no other follows and ke_launch returns KE_LAUNCH_FAILED.
 * Inside: ke_thread() of ke_threads(), ke_block() of ke_blocks(), ke_lane() of KE_WARP threads that run together,
 * ke_barrier() for a block, ke_shuffle* for a warp, which all its threads must call; those that have ended are waited for
 * no more. Mathematics is ke_exp(x) and so on, for float and double. 16-bit floats are ke_f16 and ke_bf16: ke_float(x)
 * reads one, ke_narrow<ke_f16>(x) rounds to one. ke_load<N>(p) and ke_store(p, x) move N elements at once; `p` is aligned
 * to them, to 16 bytes where they have more.
 *
 * KE_SIMT: blocks emulated on a processor. KE_FREESTANDING: clang without any vendor's headers; the device's side alone.
 */
#ifndef KE_GPU_H
#define KE_GPU_H

#include "ke_abi.h"

#define KE_LAUNCH_FAILED 100 /* of ke_launch: the device did not take a launch */

#if defined(KE_SIMT)

#include "simt.h"

#elif defined(KE_FREESTANDING)

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define KE_LAUNCH(kernel, blocks, threads, stream, ...) ((void)(blocks), (void)(threads), (void)(stream))
#define KE_HALVES
typedef _Float16 ke_f16;
typedef __bf16 ke_bf16;
#ifdef __HIP__
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define KE_WARP 64
__device__ inline int ke_thread() { return (int)__builtin_amdgcn_workitem_id_x(); }
__device__ inline int ke_block() { return (int)__builtin_amdgcn_workgroup_id_x(); }
__device__ inline int ke_threads() { return (int)__builtin_amdgcn_workgroup_size_x(); }
__device__ inline int ke_blocks() { return (int)(__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()); }
__device__ inline void ke_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline unsigned ke_word(unsigned word, int lane) {
  return (unsigned)__builtin_amdgcn_ds_bpermute(lane << 2, (int)word);
}
/* What the device library asks: no fast mathematics. */
extern "C" __device__ const __attribute__((used, weak)) bool __oclc_finite_only_opt = false;
extern "C" __device__ const __attribute__((used, weak)) bool __oclc_unsafe_math_opt = false;
extern "C" __device__ const __attribute__((used, weak)) bool __oclc_correctly_rounded_sqrt32 = true;
extern "C" __device__ const __attribute__((used, weak)) bool __oclc_daz_opt = false;
extern "C" __device__ const __attribute__((used, weak)) bool __oclc_wavefrontsize64 = true;
extern "C" __device__ const __attribute__((used, weak)) int __oclc_ISA_version = 9000;
#define KE_OF1(name) __ocml_##name##_f32
#define KE_OF2(name) __ocml_##name##_f64
#else
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#define KE_WARP 32
__device__ inline int ke_thread() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ inline int ke_block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
__device__ inline int ke_threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
__device__ inline int ke_blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
__device__ inline void ke_barrier() { __syncthreads(); }
__device__ inline unsigned ke_word(unsigned word, int lane) {
  return (unsigned)__nvvm_shfl_sync_idx_i32(~0u, (int)word, lane, 31);
}
#define KE_OF1(name) __nv_##name##f
#define KE_OF2(name) __nv_##name
#endif

#else

#if defined(__HIPCC__)
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#define KE_WARP 64
typedef hip_bfloat16 ke_bf16;
__device__ inline float ke_float(ke_bf16 x) { return (float)x; }
__device__ inline unsigned ke_word(unsigned word, int lane) { return (unsigned)__shfl((int)word, lane); }
#define KE_TAKEN(kernel, blocks, threads, arguments, stream) \
  (hipLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, (hipStream_t)(stream)) == hipSuccess)
#define KE_FORGET() ((void)hipGetLastError())
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define KE_WARP 32
typedef __nv_bfloat16 ke_bf16;
__device__ inline float ke_float(ke_bf16 x) { return __bfloat162float(x); }
__device__ inline unsigned ke_word(unsigned word, int lane) { return __shfl_sync(~0u, word, lane); }
#define KE_TAKEN(kernel, blocks, threads, arguments, stream) \
  (cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, (cudaStream_t)(stream)) == cudaSuccess)
#define KE_FORGET() ((void)cudaGetLastError())
#endif
typedef __half ke_f16;
__device__ inline float ke_float(ke_f16 x) { return __half2float(x); }

/* A call is over with the first launch that is not taken: the kernels after it would work on what was not written. */
static thread_local int ke_launch_code = KE_OK;
template <class T> struct KeSame { typedef T type; };
template <class... P>
inline void ke_start(void (*kernel)(P...), int64_t blocks, int64_t threads, void* stream,
                     typename KeSame<P>::type... given) {
  if (ke_launch_code != KE_OK) return;
  void* arguments[] = {(void*)&given..., nullptr};
  const bool possible = blocks > 0 && blocks <= 0x7fffffff && threads > 0 && threads <= 1024;
  if (possible && KE_TAKEN((const void*)kernel, (unsigned)blocks, (unsigned)threads, arguments, stream)) return;
  ke_launch_code = KE_LAUNCH_FAILED;
  KE_FORGET();  /* it is told by that code, not to whoever calls the runtime next */
}
#define KE_LAUNCH(kernel, blocks, threads, stream, ...) ke_start(kernel, blocks, threads, stream, ##__VA_ARGS__)
extern "C" __attribute__((visibility("hidden"))) int ke_candidate(const KeTensor* in, int n_in, KeTensor* out, int n_out,
                                                                  void* stream);
extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {
  ke_launch_code = KE_OK;
  const int code = ke_candidate(in, n_in, out, n_out, stream);
  return ke_launch_code != KE_OK ? ke_launch_code : code;
}
#define ke_launch ke_candidate

__device__ inline int ke_thread() { return (int)threadIdx.x; }
__device__ inline int ke_block() { return (int)blockIdx.x; }
__device__ inline int ke_threads() { return (int)blockDim.x; }
__device__ inline int ke_blocks() { return (int)gridDim.x; }
__device__ inline void ke_barrier() { __syncthreads(); }
#define KE_OF1(name) ::name##f
#define KE_OF2(name) ::name
#define KE_DECLARED
#endif

#ifdef KE_HALVES
__device__ inline float ke_float(ke_f16 x) { return (float)x; }
__device__ inline float ke_float(ke_bf16 x) { return (float)x; }
#endif
template <class T> __device__ inline T ke_narrow(float x) { return (T)x; }
#if !defined(KE_SIMT) && !defined(KE_HALVES)
template <> __device__ inline ke_f16 ke_narrow<ke_f16>(float x) { return __float2half_rn(x); }
#if !defined(__HIPCC__)
template <> __device__ inline ke_bf16 ke_narrow<ke_bf16>(float x) { return __float2bfloat16_rn(x); }
#endif
#endif

#ifdef KE_OF1
#ifdef KE_DECLARED
#define KE_DECLARE(result, name, ...)
#else
#define KE_DECLARE(result, name, ...) extern "C" __device__ result name(__VA_ARGS__);
#endif
#define KE_MATH1(name)                                                            \
  KE_DECLARE(float, KE_OF1(name), float) KE_DECLARE(double, KE_OF2(name), double) \
  __device__ inline float ke_##name(float x) { return KE_OF1(name)(x); }          \
  __device__ inline double ke_##name(double x) { return KE_OF2(name)(x); }
#define KE_MATH2(name)                                                                            \
  KE_DECLARE(float, KE_OF1(name), float, float) KE_DECLARE(double, KE_OF2(name), double, double)  \
  __device__ inline float ke_##name(float x, float y) { return KE_OF1(name)(x, y); }              \
  __device__ inline double ke_##name(double x, double y) { return KE_OF2(name)(x, y); }
KE_MATH1(exp) KE_MATH1(exp2) KE_MATH1(expm1) KE_MATH1(log) KE_MATH1(log2) KE_MATH1(log10) KE_MATH1(log1p)
KE_MATH1(erf) KE_MATH1(erfc) KE_MATH1(tanh) KE_MATH1(sin) KE_MATH1(cos) KE_MATH1(tan) KE_MATH1(asin) KE_MATH1(acos)
KE_MATH1(atan) KE_MATH1(sinh) KE_MATH1(cosh) KE_MATH1(asinh) KE_MATH1(acosh) KE_MATH1(atanh) KE_MATH1(sqrt)
KE_MATH1(rsqrt) KE_MATH1(floor) KE_MATH1(ceil) KE_MATH1(trunc) KE_MATH1(rint) KE_MATH1(fabs)
KE_MATH2(pow) KE_MATH2(atan2) KE_MATH2(fmod)
#endif

__device__ inline int ke_lane() { return ke_thread() % KE_WARP; }

/* ``value`` of another thread of the warp. */
template <class T> __device__ inline T ke_shuffle(T value, int lane) {
  constexpr int words = (sizeof(T) + 3) / 4;
  unsigned held[words] = {};
  __builtin_memcpy(held, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) held[i] = ke_word(held[i], lane);
  __builtin_memcpy(&value, held, sizeof(T));
  return value;
}
template <class T> __device__ inline T ke_shuffle_xor(T value, int mask) { return ke_shuffle(value, ke_lane() ^ mask); }
template <class T> __device__ inline T ke_shuffle_down(T value, int by) {
  return ke_shuffle(value, ke_lane() + by < KE_WARP ? ke_lane() + by : ke_lane());
}

template <int Bytes> struct KeRaw;
#if defined(__NVCC__)
template <> struct KeRaw<16> { typedef uint4 type; };
template <> struct KeRaw<8> { typedef uint2 type; };
#else
template <> struct KeRaw<16> { typedef unsigned type __attribute__((vector_size(16), may_alias)); };
template <> struct KeRaw<8> { typedef unsigned type __attribute__((vector_size(8), may_alias)); };
#endif
template <> struct KeRaw<4> { typedef unsigned type; };
template <> struct KeRaw<2> { typedef unsigned short type; };
template <> struct KeRaw<1> { typedef unsigned char type; };

template <class T, int N> struct KeVec {
  T v[N];
  __device__ T& operator[](int i) { return v[i]; }
  __device__ const T& operator[](int i) const { return v[i]; }
};
template <int N, class T> __device__ inline KeVec<T, N> ke_load(const T* from) {
  constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16, parts = N * sizeof(T) / bytes;
  typedef typename KeRaw<bytes>::type Raw;
  Raw raw[parts];
  KeVec<T, N> x;
#pragma unroll
  for (int i = 0; i < parts; ++i) raw[i] = ((const Raw*)from)[i];
  __builtin_memcpy(&x, raw, sizeof x);
  return x;
}
template <class T, int N> __device__ inline void ke_store(T* to, const KeVec<T, N>& x) {
  constexpr int bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16, parts = N * sizeof(T) / bytes;
  typedef typename KeRaw<bytes>::type Raw;
  Raw raw[parts];
  __builtin_memcpy(raw, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < parts; ++i) ((Raw*)to)[i] = raw[i];
}

#endif
