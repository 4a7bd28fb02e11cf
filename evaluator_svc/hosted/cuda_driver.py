"""The few calls of NVIDIA's driver that the controller and a candidate's side need, by ctypes on ``libcuda.so.1``.

Numbers and names are those of <cuda.h>.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from typing import Any

LIBRARY = "libcuda.so.1"
HANDLE_BYTES = 64
"""``CU_IPC_HANDLE_SIZE``."""
LAZY_PEER_ACCESS = 1
"""``CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS``."""
BUFFER_ID = 7
"""``CU_POINTER_ATTRIBUTE_BUFFER_ID``: of an allocation, never given again in a process' life."""
UNOPENED = "the inputs cannot be opened in a candidate's box"
"""What the candidate's side says first where it cannot open the controller's memory; no foreign line has run then."""
BLOCK_BYTES = 2 << 20
"""What the driver takes for itself at a time."""
L2_BYTES = 38
"""``CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE``."""


class DriverError(RuntimeError):
    """A call that the driver refused; ``code`` is its CUresult."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} failed with error {code}")
        self.call, self.code = call, code


class Handle(ctypes.Structure):
    """``CUipcMemHandle``: passed by value, so it must be a structure."""

    _fields_ = (("reserved", ctypes.c_char * HANDLE_BYTES),)


@dataclass(frozen=True, slots=True)
class Extent:
    """An allocation in this process' addresses; ``size`` in bytes, as the driver tells it."""

    base: int
    size: int


class Driver:
    """The primary context of device 0, as torch and CuPy use it, current in every thread that makes a call.

    Raises:
        OSError: there is no driver.
        DriverError: it refused a call; so do all methods.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        self._cuda = ctypes.CDLL(library)
        self._context: ctypes.c_void_p | None = None
        self._threads = threading.local()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._do("cuInit", ctypes.c_uint(0))
        self._do("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._device, self._context = device, context

    def cache_bytes(self) -> int:
        """Size of the second-level cache."""
        size = ctypes.c_int()
        self._do("cuDeviceGetAttribute", ctypes.byref(size), ctypes.c_int(L2_BYTES), self._device)
        return size.value

    def allocate(self, size: int) -> int:
        """The address of ``size`` new bytes, an allocation of their own, which other processes can open.

        The driver lays small allocations side by side, and who opens one may reach its neighbours: these have none.
        """
        address, whole = ctypes.c_uint64(), -(-max(size, 1) // BLOCK_BYTES) * BLOCK_BYTES
        self._do("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(whole))
        return address.value

    def free(self, address: int) -> None:
        """Give back what ``allocate`` gave."""
        self._do("cuMemFree_v2", ctypes.c_uint64(address))

    def extent(self, address: int) -> Extent:
        """The allocation that holds ``address``."""
        base, size = ctypes.c_uint64(), ctypes.c_size_t()
        self._do("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address))
        return Extent(base.value, size.value)

    def identity(self, address: int) -> int:
        """A number of the allocation that holds ``address``: another one after it was freed and made again."""
        found = ctypes.c_uint64()
        self._do("cuPointerGetAttribute", ctypes.byref(found), ctypes.c_int(BUFFER_ID), ctypes.c_uint64(address))
        return found.value

    def share(self, base: int) -> bytes:
        """What another process opens the allocation at ``base`` by."""
        handle = Handle()
        self._do("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(base))
        return bytes(handle)

    def open(self, handle: bytes) -> int:
        """Where another process' allocation is mapped here. A process cannot open its own."""
        address = ctypes.c_uint64()
        shared = Handle.from_buffer_copy(handle)
        self._do("cuIpcOpenMemHandle_v2", ctypes.byref(address), shared, ctypes.c_uint(LAZY_PEER_ACCESS))
        return address.value

    def close(self, address: int) -> None:
        """Unmap what ``open`` gave."""
        self._do("cuIpcCloseMemHandle", ctypes.c_uint64(address))

    def fill(self, address: int, value: int, size: int) -> None:
        """Set bytes; does not wait."""
        self._do("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(value), ctypes.c_size_t(size))

    def synchronise(self) -> None:
        """Wait for what this process has asked for."""
        self._do("cuCtxSynchronize")

    def _do(self, name: str, *arguments: Any) -> None:
        if self._context is not None and not getattr(self._threads, "current", False):
            self._threads.current = True
            self._do("cuCtxSetCurrent", self._context)
        code = int(getattr(self._cuda, name)(*arguments))
        if code:
            raise DriverError(name, code)
