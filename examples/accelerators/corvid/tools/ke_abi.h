/* ke_abi.h: the whole contract between a native kernel and whoever launches it.
 *
 * A kernel is one translation unit that defines ke_launch. It reads `in`, writes every element of `out`
 * (destination passing: the caller allocates), and returns KE_OK. Inputs are the operator's inputs in the order of
 * get_inputs(), then its parameters and buffers in state-dict order. Inputs must not be written. Data pointers are
 * aligned to 64 bytes, tensors contiguous in row-major order. Strides count elements. At most KE_MAX_DIMS
 * dimensions.
 *
 * A kernel specialised for some shapes checks them first and returns KE_DECLINED for others; the caller then falls
 * back to the reference. A kernel that does so exports `const int ke_shape_guard = 1;`.
 *
 * `stream` is the device stream on chips that have one and NULL on a CPU. Threads: a kernel may use OpenMP up to
 * omp_get_max_threads(), which the caller sets.
 */
#ifndef KE_ABI_H
#define KE_ABI_H

#include <stdint.h>

#define KE_ABI_VERSION 1
#define KE_MAX_DIMS 8

#define KE_OK 0
#define KE_DECLINED 1 /* shapes, strides or dtypes are outside this kernel's contract */

enum KeDtype {
  KE_F32 = 0, KE_F64 = 1, KE_F16 = 2, KE_BF16 = 3,
  KE_I8 = 4, KE_I16 = 5, KE_I32 = 6, KE_I64 = 7, KE_U8 = 8, KE_BOOL = 9
};

typedef struct {
  void *data;
  int64_t shape[KE_MAX_DIMS];
  int64_t strides[KE_MAX_DIMS];
  int32_t ndim;
  int32_t dtype; /* enum KeDtype */
} KeTensor;

#ifdef __cplusplus
extern "C" {
#endif
int ke_launch(const KeTensor *in, int n_in, KeTensor *out, int n_out, void *stream);
#ifdef __cplusplus
}
#endif
#endif
