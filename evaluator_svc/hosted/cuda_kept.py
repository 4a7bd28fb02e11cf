"""Candidate's side: tensors on a GPU whose inputs a keeper holds and whose results it reads. In the place of ``cuda``.

Inputs are memory of the keeper's process, opened before any foreign line runs. Results are told by the handle of
their allocation. Nothing is copied, flushed or timed here: the clock is the controller's.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator_svc.hosted.cuda_driver import Driver, DriverError

CPU = "cpu"


class Kept:
    """The device, with the functions of ``cpu`` and ``cuda``. ``told``: what the keeper's owner says of it.

    ``base``: where the first input of the first set lies, less its ``at``.
    """

    def __init__(self, told: dict[str, Any], threads: int) -> None:
        self.NAME: str = told["tensors"]
        self._under = importlib.import_module(f"evaluator_svc.hosted.{self.NAME}")
        self._under.setup(threads)
        self._driver = Driver(told["library"])
        self.base = self._driver.open(bytes.fromhex(told["handle"]))
        self._at: list[int] = told["at"]
        self._stride: int = told["stride"]
        self._handles: dict[int, tuple[bytes, int]] = {}
        """Of allocations that results have lain in, by identity: handle and first address."""

    def input_address(self, set_: int, index: int) -> int:
        return self.base + set_ * self._stride + self._at[index]

    def load_input(self, address: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor that *is* the keeper's memory at ``address``."""
        count = 1
        for extent in shape:
            count *= extent
        size = count * dtype.itemsize
        if self.NAME == CPU:
            flat = torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=torch.uint8, count=size)
        else:
            flat = torch.as_tensor(_Lent(address, size), device=self.NAME)
        return flat.view(dtype).reshape(tuple(shape))

    def refresh(self, inputs: Sequence[torch.Tensor]) -> None:
        """Bring inputs to the device; the keeper does."""

    def stain(self) -> None:
        self._under.stain()

    def repeated(self, turn: Callable[[int], None], order: Sequence[int]) -> int | None:
        """``turn`` on each of ``order``, all of it ended; no clock of the device's is asked."""
        for set_ in order:
            turn(set_)
        self._driver.synchronise()
        return None

    def address(self, tensor: torch.Tensor) -> int:
        return tensor.data_ptr()

    def share(self, address: int) -> tuple[bytes, int] | None:
        """The handle of the allocation that holds ``address``, and how far in it lies; None for what has none."""
        try:
            identity = self._driver.identity(address)
            if identity not in self._handles:
                base = self._driver.extent(address).base
                self._handles[identity] = self._driver.share(base), base
        except DriverError:
            return None  # the controller has a name for that
        handle, base = self._handles[identity]
        return handle, address - base


class _Lent:
    """Device memory that torch takes as it is, and never frees."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
