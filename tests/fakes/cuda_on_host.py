"""CUDA C++ without barriers, run by the host: what ``RawModule`` is asked for in CuPy's place.

The text is compiled as it is, by g++; threads run one after the other. Pointers are the host's.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from evaluator_svc.runner.program import compiler

BEFORE = r"""
#include <math.h>
#include <cstring>
#define __device__ static inline
#define __global__
#define asm(text) f = half_as_float(v)
struct Index { unsigned x, y, z; };
static Index blockIdx, threadIdx, blockDim, gridDim;
struct alignas(16) uint4 { unsigned x, y, z, w; };
static float half_as_float(unsigned short v) { _Float16 h; memcpy(&h, &v, 2); return h; }
static float __uint_as_float(unsigned v) { float f; memcpy(&f, &v, 4); return f; }
"""
AFTER = r"""
template <class... A> static void all(void (*kernel)(A...), unsigned x, unsigned y, unsigned threads, A... given) {
  gridDim = {x, y, 1}, blockDim = {threads, 1, 1};
  for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel(given...);
}
"""
TYPES = {np.dtype(np.int64): ctypes.c_longlong, np.dtype(np.float32): ctypes.c_float,
         np.dtype(np.float64): ctypes.c_double}  # fmt: skip


class Array:
    """One of the device's, as far as our kernels' callers look at it."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.shape, self.size, self.strides = values.shape, values.size, values.strides
        self.data = SimpleNamespace(ptr=values.ctypes.data)

    def __getitem__(self, key: Any) -> Any:
        found = self.values[key]
        return Array(found) if isinstance(found, np.ndarray) else found

    def get(self) -> np.ndarray:
        return self.values.copy()


class RawModule:
    """``code`` built once, in ``directory``. ``parameters``: by kernel the C types of its parameters, for those that
    macros write.
    """

    def __init__(self, code: str, options: tuple[str, ...], parameters: dict[str, str], directory: Path) -> None:
        (standard,) = options
        launches = "\n".join(_launch(name, types.split(", ")) for name, types in parameters.items())
        source, library = (directory / f"kernels.{end}" for end in ("cpp", "so"))
        source.write_text(BEFORE + code + AFTER + launches)
        flags = (standard.removeprefix("-").replace("--", "-"), "-O1", "-fno-strict-aliasing", "-ffp-contract=off")
        command = [str(compiler()), *flags, "-w", "-shared", "-fPIC", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        self._library = ctypes.CDLL(str(library))

    def get_function(self, name: str) -> Callable[..., None]:
        launch = getattr(self._library, f"launch_{name}")
        launch.restype = None

        def run(grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
            x, y = (*grid, 1)[:2]
            launch(*(ctypes.c_uint(one) for one in (x, y, block[0])), *map(_argument, arguments))

        return run


def _launch(name: str, types: list[str]) -> str:
    given = [f"a{i}" for i in range(len(types))]
    declared = ", ".join(f"{kind} {one}" for kind, one in zip(types, given, strict=True))
    return (
        f'extern "C" void launch_{name}(unsigned x, unsigned y, unsigned threads, {declared}) '
        f"{{ all({name}, x, y, threads, {', '.join(given)}); }}"
    )


def _argument(one: Any) -> Any:
    if isinstance(one, Array):
        return ctypes.c_void_p(one.data.ptr)
    if isinstance(one, np.generic):
        return TYPES[one.dtype](one.item())
    return ctypes.c_void_p(one)
