"""Candidate's side: tensors on the GPU. The sibling of ``cpu``, with the same functions.

Inputs are copied to the device when told to, results back when told to; neither is timed. Every call has a flushed
second-level cache before it, in the same stream, and two events around it: the device's own account of its time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator_svc.hosted.flush import Flush

NAME = "cuda"
EVENTS_MAX = 4096
"""Calls of one block whose events are kept."""
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
    for tensor in inputs:
        tensor.copy_(_shared[tensor.data_ptr()])
    torch.cuda.synchronize()


def repeated(turn: Callable[[int], None], order: Sequence[int]) -> int | None:
    """``turn`` on each of ``order``, each after a flush, all of it ended, and the device's time for all, ns."""
    assert _flush is not None
    counted = min(len(order), EVENTS_MAX)
    marks = [_event() for _ in range(2 * counted)]
    _flush.reset_persisting()
    for i, set_ in enumerate(order):
        _flush()
        if i < counted:
            marks[2 * i].record()
        turn(set_)
        if i < counted:
            marks[2 * i + 1].record()
    torch.cuda.synchronize()
    spent = sum(marks[2 * i].elapsed_time(marks[2 * i + 1]) for i in range(counted))
    return round(spent / counted * len(order) * NS_PER_MS) if counted else None


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
