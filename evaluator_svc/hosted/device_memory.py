"""What the controller holds on a GPU for one candidate: its inputs, what they must still be, and its results.

The inputs are one allocation of the driver's, which the candidate opens by its handle. Memory that was opened so can be
written, so what was given is kept a second time where nobody else can reach it: inputs are compared with it after every
block, and reach the shared allocation only just before one. Results are copied out of the candidate's allocations while
it is frozen. Nothing here believes it: where an allocation ends is asked of the driver, under its address in this
process. Nothing goes through the host's memory but what a caller gives from there.

Blocking. Everything is enqueued on one stream; what is returned is done.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import equal, flat, on_device, on_host
from evaluator_svc.hosted import device_layout
from evaluator_svc.hosted.cuda_driver import Driver, DriverError, Extent
from evaluator_svc.hosted.strided import Strided
from evaluator_svc.runner.buffers import turns
from evaluator_svc.tensors import TensorSpec

OPEN_MAX = 256
"""Allocations of a candidate's that are mapped at a time: one for each large result that it holds."""
FLUSH_TIMES = 2
"""Writing so many times the second-level cache replaces what it held."""
PROBE_BYTES = 4096
COMPARED_BYTES = 1 << 28
"""At a time: a comparison makes a byte for every word."""
WORD = 8


class Arrays(Protocol):
    """What is needed of ``gpu_arrays``."""

    def placed(self, data: NDArray[Any]) -> Any: ...
    def wrap(self, address: int, nbytes: int, owner: object) -> Any: ...
    def strided(self, flat: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any: ...
    def synchronise(self) -> None: ...
    def release(self) -> None: ...


class Unreadable(Exception):
    """Why a result cannot be read: ``"is no device memory of its own"``."""


class DeviceMemory:
    """``sets`` copies of ``inputs`` and ``outputs``.

    Raises:
        DriverError: no memory, or none that can be shared; so do all methods for what the driver refuses.
    """

    def __init__(
        self, driver: Driver, arrays: Arrays, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int
    ) -> None:
        self._driver, self.arrays = driver, arrays
        self.inputs, self.outputs = device_layout.plan(inputs, sets), device_layout.plan(outputs, sets)
        self._owned: list[int] = []
        self._opened: OrderedDict[bytes, Extent] = OrderedDict()
        self._turn = 0
        try:
            self._shared, given = self._allocated(self.inputs.nbytes)
            _, self._given = self._allocated(self.inputs.nbytes)
            _, self._results = self._allocated(self.outputs.nbytes)
            self._scrap_bytes = max(PROBE_BYTES, FLUSH_TIMES * driver.cache_bytes())
            self._scrap, _ = self._allocated(self._scrap_bytes)
            self.handle = driver.share(self._shared)
            """What the candidate's process opens the inputs by."""
        except DriverError:
            self.close()
            raise
        self._inputs = given
        for memory in (self._inputs, self._given, self._results):
            memory[...] = 0
        arrays.synchronise()

    def input(self, set_: int, index: int) -> Any:
        """What the input of the next block is: bytes on the device, to read or to write."""
        return self._tensor(self._given, self.inputs, set_, index)

    def output(self, set_: int, index: int) -> Any:
        """What was read last: bytes on the device."""
        return self._tensor(self._results, self.outputs, set_, index)

    def output_rows(self, index: int) -> Any:
        """The same of all sets: sets x bytes."""
        return self._rows(self._results, self.outputs, index)

    def write_sets(self, sets: Sequence[int], index: int, data: Any) -> None:
        """Fill an input of several sets from an array on the device, or from anything with the buffer protocol."""
        here = self.here(data)
        for set_ in sets:
            self.input(set_, index)[...] = here

    def give(self, first_set: int, calls: int) -> None:
        """Let the candidate have the inputs of the sets that ``calls`` calls from ``first_set`` on are made on."""
        for part in self._parts(first_set, calls):
            self._inputs[part] = self._given[part]
        self.arrays.synchronise()

    def changed(self, first_set: int, calls: int) -> str | None:
        """Where an input of those sets is no longer what was given."""
        for part in self._parts(first_set, calls):
            for start in range(part.start, part.stop, COMPARED_BYTES):
                some = slice(start, min(start + COMPARED_BYTES, part.stop))
                if not equal(self._inputs[some], self._given[some]):
                    differs = self._inputs[some].view(np.uint64) != self._given[some].view(np.uint64)
                    word = start + int(np.argmax(differs)) * WORD
                    one, other = (on_host(m[word : word + WORD]) for m in (self._inputs, self._given))
                    return self.inputs.where(word + int(np.argmax(one != other)))
        return None

    def flush(self) -> None:
        """Have the second-level cache hold nothing of a candidate's, nor of the inputs."""
        self._driver.fill(self._scrap, self._next(), self._scrap_bytes)
        self._driver.synchronise()

    def probe_ns(self) -> int:
        """What a tiny operation takes now."""
        begin = time.perf_counter_ns()
        self._driver.fill(self._scrap, self._next(), PROBE_BYTES)
        self._driver.synchronise()
        return time.perf_counter_ns() - begin

    def place(self, handle: bytes, offset: int, span: int) -> int:
        """Where ``span`` bytes at ``offset`` of the allocation behind ``handle`` are mapped here.

        Raises:
            Unreadable: they are not, or not all of them.
        """
        if handle == self.handle:
            raise Unreadable("is the memory of an input")
        extent = self._opened.get(handle)
        if extent is None:
            try:
                base = self._driver.open(handle)
                extent = self._driver.extent(base)
            except DriverError as error:
                raise Unreadable(f"is no device memory of its own ({error})") from error
            self._opened[handle] = extent
            while len(self._opened) > OPEN_MAX:
                self._unmap(self._opened.popitem(last=False)[1])
        self._opened.move_to_end(handle)
        if not 0 <= offset <= offset + span <= extent.size:
            raise Unreadable(f"reaches past its allocation ({span} bytes at {offset} of {extent.size})")
        return extent.base + offset

    def read(self, set_: int, index: int, tensor: Strided) -> None:
        """Copy a result, whose address is one that ``place`` gave, to its output."""
        source, target = self._source(set_, index, tensor)
        target[...] = source

    def same(self, set_: int, index: int, tensor: Strided) -> bool:
        """Whether a result is still what was read."""
        source, target = self._source(set_, index, tensor)
        return equal(source, target) if tensor.contiguous else bool((source == target).all())

    def forget(self) -> None:
        """Unmap the allocations of a candidate that is gone."""
        while self._opened:
            self._unmap(self._opened.popitem()[1])

    def close(self) -> None:
        """Give everything back; arrays that were handed out are then of no more use."""
        self.forget()
        self._inputs = self._given = self._results = None
        while self._owned:
            self._driver.free(self._owned.pop())
        self.arrays.release()

    def _allocated(self, nbytes: int) -> tuple[int, Any]:
        address = self._driver.allocate(nbytes)
        self._owned.append(address)
        return address, self.arrays.wrap(address, nbytes, self)

    def _source(self, set_: int, index: int, tensor: Strided) -> tuple[Any, Any]:
        """A result where it lies, and its output, of one shape."""
        found = self.arrays.wrap(tensor.address, tensor.span, self)
        target = self.output(set_, index)
        if tensor.contiguous:
            return found, target
        shape = (*tensor.shape, tensor.itemsize)
        return self.arrays.strided(found, shape, (*tensor.strides, 1)), target.reshape(shape)

    def _parts(self, first_set: int, calls: int) -> list[slice]:
        """Of the allocation of inputs; whole words."""
        return [
            slice(column.at + begin * column.stride, column.at + end * column.stride)
            for begin, end in turns(first_set, calls, self.inputs.sets)
            for column in self.inputs.columns
        ]

    def here(self, data: Any) -> Any:
        """``data`` as flat bytes on the device."""
        given = flat(data)
        return given if on_device(given) else self.arrays.placed(given)

    @staticmethod
    def _tensor(memory: Any, layout: device_layout.DeviceLayout, set_: int, index: int) -> Any:
        at = layout.at(set_, index)
        return memory[at : at + layout.columns[index].nbytes]

    @staticmethod
    def _rows(memory: Any, layout: device_layout.DeviceLayout, index: int) -> Any:
        column = layout.columns[index]
        whole = memory[column.at : column.at + layout.sets * column.stride]
        return whole.reshape(layout.sets, column.stride)[:, : column.nbytes]

    def _unmap(self, extent: Extent) -> None:
        try:
            self._driver.close(extent.base)
        except DriverError:
            return  # its owner is gone, and the mapping with it

    def _next(self) -> int:
        """Another byte each time, so that no write can be skipped as a repetition."""
        self._turn = (self._turn + 1) % 127
        return self._turn
