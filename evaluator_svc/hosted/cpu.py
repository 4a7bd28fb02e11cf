"""Candidate's side: tensors on the processor. Another device has a module with the same functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

NAME = "cpu"


def setup(threads: int) -> None:
    """Before any foreign line runs: threads of an operation, and chance that no two processes share."""
    torch.set_num_threads(threads)
    torch.seed()


def load_input(address: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor that *is* the shared memory at ``address``, which nobody in this process can write."""
    count = 1
    for extent in shape:
        count *= extent
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=dtype, count=count).reshape(tuple(shape))


def refresh(inputs: Sequence[torch.Tensor]) -> None:
    """Bring inputs to the device; here they are where the controller writes them."""


def stain() -> None:
    """Fill memory that is handed out next; here the allocator does that (``stain.hpp``)."""


def repeated(turn: Callable[[int], None], order: Sequence[int]) -> int | None:
    """``turn`` on each of ``order``, all of it ended, and the device's time: here it has no clock."""
    for set_ in order:
        turn(set_)
    return None


def finish() -> None:
    """Wait until the results are there; here they are."""


def address(tensor: torch.Tensor) -> int:
    """Where the controller finds the first element of ``tensor``."""
    return tensor.data_ptr()


def export(tensor: torch.Tensor, address: int) -> None:
    """Copy ``tensor`` to the shared memory at ``address``, where the controller may not read this process."""
    flat: Any = tensor.detach().contiguous()
    ctypes.memmove(address, flat.data_ptr(), flat.numel() * flat.element_size())
