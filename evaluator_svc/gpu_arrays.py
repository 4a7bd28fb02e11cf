"""Arrays on this machine's GPU, by CuPy: what the controller holds there, and calculates with.

The one module that imports it; it is imported on a machine with a GPU only. All of it runs on the default stream of the
device's primary context, which ``hosted.cuda_driver`` uses, too, so what one enqueues the other finds done.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from evaluator_svc import arrays, nearness
from evaluator_svc.gpu_kernels import Comparisons


def available() -> str:
    """Why there are no such arrays here; empty where there are."""
    try:
        cupy = _cupy()
        some, comparisons = cupy.arange(4, dtype=cupy.uint8), Comparisons(cupy)
        some.sum().get()
        comparisons.same_bytes(some, some)  # compiled now: later it would be in the middle of an evaluation
        arrays.same_bytes.register(cupy.ndarray, comparisons.same_bytes)
        nearness.rows_near.register(cupy.ndarray, comparisons.rows_near)
    except Exception as error:  # noqa: BLE001 - a driver, a compiler or a library: whatever is missing, it raises its own
        first = str(error).strip().splitlines() or [""]
        return f"CuPy does not work here: {type(error).__name__}: {first[0]}"
    return ""


def placed(data: NDArray[Any]) -> Any:
    """A copy of ``data`` on the device, of the same type and shape."""
    return _cupy().asarray(data)


def wrap(address: int, nbytes: int, owner: object) -> Any:
    """``nbytes`` bytes of device memory at ``address``, which live as long as ``owner`` does."""
    cupy = _cupy()
    memory = cupy.cuda.UnownedMemory(address, nbytes, owner, device_id=0)
    return cupy.ndarray((nbytes,), dtype=cupy.uint8, memptr=cupy.cuda.MemoryPointer(memory, 0))


def strided(flat: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of ``flat``, which begins where it does; strides in bytes."""
    return _cupy().lib.stride_tricks.as_strided(flat, shape, strides)


def release() -> None:
    """Give memory that nothing uses back to the driver: other processes use the device, too."""
    _cupy().get_default_memory_pool().free_all_blocks()


def synchronise() -> None:
    """Wait for what this process has asked its device for."""
    _cupy().cuda.runtime.deviceSynchronize()


def _cupy() -> Any:
    import cupy

    return cupy
