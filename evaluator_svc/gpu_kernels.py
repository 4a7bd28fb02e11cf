"""Comparisons that read their operands once, as kernels of our own; CuPy's take a pass over memory for each operation.

On an H200 ``near`` of 128 MiB of float16 took 3.8 ms by CuPy's operations; both operands are read in 0.07 ms at the
4 TB/s that it copies with (``python -m tests.gpu.where_time_goes``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.dtypes import DType

THREADS, BLOCKS_MOST = 256, 1 << 11
WIDE = 16
"""Bytes that a thread compares at a time."""
ROWS_MOST = 65535
"""Blocks along a grid's second axis (CUDA C++ Programming Guide, "Technical Specifications")."""
SOURCE = r"""
__device__ float f32(float v) { return v; }
__device__ double f64(double v) { return v; }
__device__ float half_of(unsigned short v) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v)); return f; }
__device__ float bfloat_of(unsigned short v) { return __uint_as_float((unsigned)v << 16); }

// Sets far[row] where an element of a row is not within the limit: also where the difference is no number.
#define NEAR(name, Stored, Real, wide)                                                                        \
    extern "C" __global__ void name(const char* rows, long long stride, const Stored* right, long long count, \
                                    Real limit, int* far) {                                                   \
        const Stored* row = (const Stored*)(rows + blockIdx.y * stride);                                      \
        const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;                                \
        const long long step = (long long)gridDim.x * blockDim.x;                                             \
        const int each = 16 / sizeof(Stored);                                                                 \
        bool beyond = false;                                                                                  \
        long long done = 0;                                                                                   \
        if ((((unsigned long long)row | (unsigned long long)right) & 15) == 0) {                              \
            for (long long i = at; i < count / each; i += step) {                                             \
                const uint4 x = ((const uint4*)row)[i], y = ((const uint4*)right)[i];                         \
                const Stored *a = (const Stored*)&x, *b = (const Stored*)&y;                                  \
                _Pragma("unroll") for (int k = 0; k < each; ++k)                                              \
                    beyond |= !(fabs(wide(a[k]) - wide(b[k])) <= limit);                                      \
            }                                                                                                 \
            done = count / each * each;                                                                       \
        }                                                                                                     \
        for (long long i = done + at; i < count; i += step)                                                   \
            beyond |= !(fabs(wide(row[i]) - wide(right[i])) <= limit);                                        \
        if (beyond) far[blockIdx.y] = 1;                                                                      \
    }
NEAR(near_f16, unsigned short, float, half_of)
NEAR(near_bf16, unsigned short, float, bfloat_of)
NEAR(near_f32, float, float, f32)
NEAR(near_f64, double, double, f64)

extern "C" __global__ void differ(const char* one, const char* other, long long count, int* found) {
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    bool unlike = false;
    long long done = 0;
    if ((((unsigned long long)one | (unsigned long long)other) & 15) == 0) {
        const uint4 *a = (const uint4*)one, *b = (const uint4*)other;
        for (long long i = at; i < count / 16; i += step) {
            const uint4 x = a[i], y = b[i];
            unlike |= (x.x ^ y.x) | (x.y ^ y.y) | (x.z ^ y.z) | (x.w ^ y.w);
        }
        done = count / 16 * 16;
    }
    for (long long i = done + at; i < count; i += step) unlike |= one[i] != other[i];
    if (unlike) *found = 1;
}
"""
NEAR = {DType.F16: "near_f16", DType.BF16: "near_bf16", DType.F32: "near_f32", DType.F64: "near_f64"}


class Comparisons:
    """By ``cupy``, the module, which is imported in one place only. Compiled on first use."""

    def __init__(self, cupy: Any) -> None:
        self._cupy, self._kernels = cupy, dict[str, Any]()

    def same_bytes(self, first: Any, second: Any) -> bool:
        """``arrays.same_bytes`` of CuPy's arrays."""
        if not first.size:
            return True
        found = self._cupy.zeros(1, dtype=np.int32)
        arguments = (first.data.ptr, second.data.ptr, np.int64(first.size), found)
        self._kernel("differ")((_blocks(first.size // WIDE),), (THREADS,), arguments)
        return not int(found[0])

    def rows_near(self, rows: Any, right: Any, dtype: DType, limit: Any) -> NDArray[np.bool_]:
        """``nearness.rows_near`` of CuPy's arrays."""
        count, stride = rows.shape[0], rows.strides[0]
        far = self._cupy.zeros(count, dtype=np.int32)
        for first in range(0, count, ROWS_MOST):
            grid = (_blocks(right.size), min(ROWS_MOST, count - first))
            arguments = (rows.data.ptr + first * stride, np.int64(stride), right, np.int64(right.size), limit)
            self._kernel(NEAR[dtype])(grid, (THREADS,), (*arguments, far[first:]))
        near: NDArray[np.bool_] = far.get() == 0
        return near

    def _kernel(self, name: str) -> Any:
        if not self._kernels:
            module = self._cupy.RawModule(code=SOURCE, options=("--std=c++17",))
            self._kernels = {one: module.get_function(one) for one in (*NEAR.values(), "differ")}
        return self._kernels[name]


def _blocks(elements: int) -> int:
    return max(1, min(BLOCKS_MOST, -(-elements // THREADS)))
