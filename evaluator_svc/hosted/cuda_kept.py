"""Candidate's side: tensors on a GPU whose inputs the controller holds and whose results it reads. See also ``cuda``.

Inputs are memory of the controller's, opened before any foreign line runs. Results are told by the handle of their
allocation. Nothing is copied, flushed or timed here: the clock is the controller's.
"""

from __future__ import annotations

import ctypes
import importlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from evaluator_svc.hosted.cuda_driver import UNOPENED, Driver, DriverError

CPU = "cpu"


@dataclass(slots=True)
class _Known:
    """An allocation that results have lain in. ``asked``: the last block in which the driver said that it is this."""

    base: int
    end: int
    identity: int
    handle: bytes
    asked: int


class Kept:
    """The device, with the functions of ``cpu`` and ``cuda``. ``told``: see ``keeping.Keeping.told``."""

    def __init__(self, told: dict[str, Any], threads: int) -> None:
        self.NAME: str = told["tensors"]
        self._under = importlib.import_module(f"evaluator_svc.hosted.{self.NAME}")
        self._under.setup(threads)
        self._driver = Driver(told["library"])
        self._handle = bytes.fromhex(told["handle"])
        try:
            self._base = self._driver.open(self._handle)
        except DriverError as error:
            print(f"{UNOPENED}: {error}", flush=True)
            raise
        self._end = self._base + int(told["nbytes"])
        self._at: list[list[int]] = told["at"]
        self._known: list[_Known] = []
        """By address,"""
        self._bases: list[int] = []
        """and where they begin."""
        self._lies: dict[int, _Known] = {}
        """By the address of a result, so that nothing is looked for that was found in this block."""
        self._block = 0

    def input_address(self, set_: int, index: int) -> int:
        at, stride = self._at[index]
        return self._base + at + set_ * stride

    def load_input(self, address: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor that *is* the controller's memory at ``address``."""
        count = 1
        for extent in shape:
            count *= extent
        size = count * dtype.itemsize
        if not size:
            return torch.empty(tuple(shape), dtype=dtype, device=self.NAME)
        if self.NAME == CPU:
            flat = torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=torch.uint8, count=size)
        else:
            flat = torch.as_tensor(_Lent(address, size), device=self.NAME)
        return flat.view(dtype).reshape(tuple(shape))

    def refresh(self, inputs: Sequence[torch.Tensor]) -> None:
        """Bring inputs to the device; the controller does."""

    def stain(self) -> None:
        self._under.stain()

    def repeated(self, turn: Callable[[int], None], order: Sequence[int]) -> int | None:
        """``turn`` on each of ``order``; no clock of the device's is asked."""
        for set_ in order:
            turn(set_)
        self._block += 1
        return None

    def finish(self) -> None:
        """Wait until the results are there."""
        self._driver.synchronise()

    def address(self, tensor: torch.Tensor) -> int:
        return tensor.data_ptr()

    def share(self, address: int) -> tuple[bytes, int] | None:
        """The handle of the allocation that holds ``address``, and how far in it lies; None for what has none.

        The clock is running: the driver is asked once for an allocation, and in every block whether it is still that.
        """
        known = self._lies.get(address)
        if known is not None and known.asked == self._block:
            return known.handle, address - known.base
        if self._base <= address < self._end:
            return self._handle, address - self._base
        place = bisect_right(self._bases, address) - 1
        known = self._known[place] if place >= 0 else None
        if known is None or address >= known.end or known.asked != self._block:
            known = self._asked(address, known)
            if known is None:
                return None
        self._lies[address] = known
        return known.handle, address - known.base

    def _asked(self, address: int, known: _Known | None) -> _Known | None:
        """What the driver says of the allocation at ``address``; None where it can be shared with nobody."""
        try:
            identity = self._driver.identity(address)
            if known is not None and address < known.end and known.identity == identity:
                known.asked = self._block
                return known
            extent = self._driver.extent(address)
            handle = self._driver.share(extent.base)
        except DriverError:
            return None  # the controller has a name for that
        # What lay there before is gone.
        gone = [one for one in self._known if one.base < extent.base + extent.size and extent.base < one.end]
        made = _Known(extent.base, extent.base + extent.size, identity, handle, self._block)
        self._known = sorted([made, *(one for one in self._known if one not in gone)], key=lambda one: one.base)
        self._bases = [one.base for one in self._known]
        self._lies.clear()
        return made


class _Lent:
    """Device memory that torch takes as it is, and never frees."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}
