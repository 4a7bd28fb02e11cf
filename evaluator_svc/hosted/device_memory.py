"""The keeper's view of a device: the inputs it holds there, and results in allocations of a candidate's.

Nothing here believes a candidate: where an allocation ends is asked of the driver, under the address at which it is
mapped in this process.
"""

from __future__ import annotations

import ctypes
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.hosted.cuda_driver import Driver, DriverError, Extent
from evaluator_svc.hosted.memory import Reader
from evaluator_svc.hosted.strided import Strided

OPEN_MAX = 64
"""Allocations of a candidate's that are mapped at a time; torch makes few and large ones."""
FLUSH_TIMES = 2
"""Writing so many times the second-level cache replaces what it held."""
PROBE_BYTES = 4096


class Unreadable(Exception):
    """Why a result cannot be read: ``"is no memory that can be shared"``."""


class DeviceMemory(Reader):
    """Of one process, which is not the candidate's. Blocking; every call returns when the device has done it."""

    def __init__(self, driver: Driver, inputs: NDArray[np.uint8]) -> None:
        """``inputs``: the runner's file of inputs, mapped. Raises ``DriverError`` where memory cannot be shared."""
        self._driver, self._host = driver, inputs
        self._arena = driver.allocate(inputs.nbytes)
        self._scrap_bytes = max(PROBE_BYTES, FLUSH_TIMES * driver.cache_bytes())
        self._scrap = driver.allocate(self._scrap_bytes)
        self._turn = 0
        self.handle = driver.share(self._arena)
        """What the candidate's process opens the inputs by."""
        self._opened: OrderedDict[bytes, Extent] = OrderedDict()
        self.fill([(0, inputs.nbytes)])

    def fill(self, stretches: Sequence[tuple[int, int]]) -> None:
        """Bring stretches of the inputs' file, begin and end, to the device."""
        for begin, end in stretches:
            self._driver.to_device(self._arena + begin, self._host[begin:].ctypes.data, end - begin)
        self._driver.synchronise()

    def changed(self, stretches: Sequence[tuple[int, int]]) -> int | None:
        """The first byte of the stretches that is not as it was filled: memory opened by a handle can be written."""
        for begin, end in stretches:
            now = np.empty(end - begin, dtype=np.uint8)
            self._driver.to_host(now.ctypes.data, self._arena + begin, now.nbytes)
            other = np.flatnonzero(now != self._host[begin:end])
            if other.size:
                return begin + int(other[0])
        return None

    def flush(self) -> None:
        """Have the second-level cache hold nothing of a candidate's, nor of the inputs."""
        self._driver.fill(self._scrap, self._next(), self._scrap_bytes)
        self._driver.synchronise()

    def probe_ns(self) -> int:
        """What a tiny operation takes now. Contexts share a device by turns, so it waits where another one works."""
        begin = time.perf_counter_ns()
        self._driver.fill(self._scrap, self._next(), PROBE_BYTES)
        self._driver.synchronise()
        return time.perf_counter_ns() - begin

    def place(self, handle: bytes, offset: int, span: int) -> int:
        """Where ``span`` bytes at ``offset`` of the allocation behind ``handle`` are mapped here.

        Raises:
            Unreadable: they are not, or not all of them.
        """
        extent = self._opened.get(handle)
        if extent is None:
            try:
                base = self._driver.open(handle)
                extent = self._driver.extent(base)
            except DriverError as error:
                raise Unreadable(f"is no device memory of its own ({error})") from error
            self._opened[handle] = extent
            self._forget_some()
        self._opened.move_to_end(handle)
        if not 0 <= offset <= offset + span <= extent.size:
            raise Unreadable(f"reaches past its allocation ({span} bytes at {offset} of {extent.size})")
        return extent.base + offset

    def copy(self, tensor: Strided, target: memoryview) -> None:
        """``read``, with the driver's refusal as a reason.

        Raises:
            Unreadable: the allocation is gone.
        """
        try:
            self.read(tensor, target)
        except DriverError as error:
            raise Unreadable(f"lies where nobody can read it ({error})") from error

    def forget(self) -> None:
        """Unmap the allocations of a candidate that is gone."""
        while self._opened:
            self._close(self._opened.popitem()[1])

    def _fill(self, address: int, target: memoryview) -> None:
        whole: Any = (ctypes.c_char * len(target)).from_buffer(target)
        self._driver.to_host(ctypes.addressof(whole), address, len(target))

    def _forget_some(self) -> None:
        while len(self._opened) > OPEN_MAX:
            self._close(self._opened.popitem(last=False)[1])

    def _close(self, extent: Extent) -> None:
        try:
            self._driver.close(extent.base)
        except DriverError:
            return  # its owner is gone, and the mapping with it

    def _next(self) -> int:
        """Another byte each time, so that no write can be skipped as a repetition."""
        self._turn = (self._turn + 1) % 127
        return self._turn
