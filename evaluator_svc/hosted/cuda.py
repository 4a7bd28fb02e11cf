"""Candidate's side: tensors on the GPU. The sibling of ``cpu``, with the same functions.

Inputs are copied to the device when told to, results back when told to; neither is timed. A block of calls finds a
flushed second-level cache, and has two events around it: the device's own account of its time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator_svc.hosted.flush import Flush

NAME = "cuda"
JUNK_BYTES = 1 << 30
NS_PER_MS = 1e6

_flush: Flush | None = None
_shared: dict[int, torch.Tensor] = {}
"""By the address of a device tensor: the shared memory it is a copy of."""


def setup(threads: int) -> None:
    """Before any foreign line runs: a context on the one device there is, and nothing persistent in its cache."""
    global _flush
    torch.set_num_threads(threads)
    torch.seed()
    _flush = Flush()
    _flush.reset_persisting()


def load_input(address: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor on the device that ``refresh`` fills from the shared memory at ``address``."""
    count = 1
    for extent in shape:
        count *= extent
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    host = torch.frombuffer(memory, dtype=dtype, count=count).reshape(tuple(shape))
    tensor = torch.empty(tuple(shape), dtype=dtype, device=NAME)
    _shared[tensor.data_ptr()] = host
    return tensor


def refresh(inputs: Sequence[torch.Tensor]) -> None:
    """Bring what the controller wrote to the device, under the same addresses."""
    assert _flush is not None
    for tensor in inputs:
        tensor.copy_(_shared[tensor.data_ptr()])
    _flush()
    torch.cuda.synchronize()


def repeated(turn: Callable[[int], None], order: Sequence[int]) -> int | None:
    """``turn`` on each of ``order``, all of it ended, and the device's time for all, ns."""
    first, last = _event(), _event()
    first.record()
    for set_ in order:
        turn(set_)
    last.record()
    torch.cuda.synchronize()
    return round(first.elapsed_time(last) * NS_PER_MS) if order else None


def finish() -> None:
    """Wait until the results are there."""
    torch.cuda.synchronize()


def stain() -> None:
    """Fill memory that the allocator would hand out next, so that what a kernel leaves unwritten is no old answer."""
    free, _ = torch.cuda.mem_get_info()
    junk = torch.empty(min(JUNK_BYTES, free // 4) // 4, dtype=torch.float32, device=NAME)
    junk.uniform_(1.0, 2.0)
    torch.cuda.synchronize()
    del junk


def address(tensor: torch.Tensor) -> int:
    """Where the first element lies; on the device, so the controller reads an exported copy."""
    return tensor.data_ptr()


def export(tensor: torch.Tensor, address: int) -> None:
    """Copy ``tensor`` to the shared memory at ``address``."""
    host: Any = tensor.detach().contiguous().cpu()
    ctypes.memmove(address, host.data_ptr(), host.numel() * host.element_size())


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
