"""Emptying a GPU's second-level cache before a call, and what that costs by itself.

Writing twice the cache's size replaces what it held, but for lines that a kernel has marked persistent: those are
reset first, and their share of the cache is set to nothing (llm.c #851: such a window survives any amount of writing).
"""

from __future__ import annotations

import ctypes
import ctypes.util

import torch

PERSISTING_L2 = 6
"""``cudaLimitPersistingL2CacheSize`` of <driver_types.h>."""
TIMES = 2


class Flush:
    """One per process. Enqueues on the current stream; does not wait."""

    def __init__(self) -> None:
        size = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        self._buffer = torch.empty(TIMES * size, dtype=torch.int8, device="cuda")
        self._runtime = _runtime()
        self._turn = 0

    def __call__(self) -> None:
        """Another byte each time, so that no write can be skipped as a repetition."""
        self._turn = (self._turn + 1) % 127
        self._buffer.fill_(self._turn)

    def reset_persisting(self) -> None:
        """No line is persistent any more, and none can become so. Waits for the device."""
        torch.cuda.synchronize()
        if self._runtime is not None:
            self._runtime.cudaDeviceSetLimit(PERSISTING_L2, ctypes.c_size_t(0))
            self._runtime.cudaCtxResetPersistingL2Cache()


def _runtime() -> ctypes.CDLL | None:
    """The CUDA runtime that torch has loaded; None when it is linked statically."""
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libcudart" in line}
    return ctypes.CDLL(min(paths)) if paths else None
