"""The controller's side of a runner's buffers: two memory files, filled, poisoned and read here."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from evaluator_svc.runner.layout import ALIGNMENT, Layout, Region, Spacing, plan
from evaluator_svc.runner.program import stopwatch
from evaluator_svc.tensors import TensorSpec

CANARY = 0xA5
SMALL = 1 << 14
"""Bytes; longer copies are made one by one."""


class Buffers:
    """``inputs_fd`` opens the input file read-only and sealed, so that a runner can never map it writable."""

    def __init__(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        sets: int,
        spacing: Spacing = Spacing.GUARDED,
    ) -> None:
        self.inputs, self.outputs, self.sets = tuple(inputs), tuple(outputs), sets
        self.layout: Layout = plan(inputs, outputs, sets, spacing)
        writable = os.memfd_create("ke-inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._inputs = _map(writable, self.layout.inputs_bytes)
        fcntl.fcntl(writable, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
        self.inputs_fd = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(writable)
        self.outputs_fd = os.memfd_create("ke-outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._outputs = _map(self.outputs_fd, self.layout.outputs_bytes)
        fcntl.fcntl(self.outputs_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._first = {(r.index, r.output): r for r in self.layout.first}
        for region in self.layout.first:
            for slack in self._slack(region):
                slack[...] = CANARY
        if spacing is Spacing.DENSE:
            self._last_line()[...] = CANARY

    def view(self, set_: int, index: int, *, output: bool) -> memoryview:
        """Writable bytes of one tensor, ``nbytes`` long."""
        region, stride = self._first[index, output], self.layout.stride(output=output)
        at = region.in_file + set_ * stride.in_file + region.data
        return memoryview(self._outputs if output else self._inputs)[at : at + region.nbytes]

    def rows(self, index: int, *, output: bool) -> NDArray[np.uint8]:
        """One tensor in all sets: writable bytes, sets x ``nbytes``. Hold it no longer than these buffers."""
        region = self._first[index, output]
        return self._columns(region, region.data, region.nbytes)

    def write(self, set_: int, index: int, data: Any) -> None:
        """Fill an input from anything with the buffer protocol."""
        view = self.view(set_, index, output=False)
        source = memoryview(data)
        view[:] = source.cast("B") if source.nbytes else b""

    def write_sets(self, sets: Sequence[int], index: int, data: NDArray[np.uint8]) -> None:
        """Fill an input of several sets with the same bytes."""
        rows = self.rows(index, output=False)
        if data.nbytes <= SMALL:
            rows[np.asarray(sets)] = data
            return
        for set_ in sets:
            rows[set_] = data

    def cool(self, first_set: int, calls: int) -> None:
        """Have no cache hold a byte of the sets that ``calls`` calls from ``first_set`` on are made on."""
        for begin, end in turns(first_set, calls, self.sets):
            for output, memory in ((False, self._inputs), (True, self._outputs)):
                stride = self.layout.stride(output=output).in_file
                flush(memory, begin * stride, (end - begin) * stride)

    def slack_broken(self) -> str | None:
        """Which bytes outside an output were written, or None."""
        for region in self.layout.first:
            if not region.output:  # the runner cannot write there
                continue
            for slack, side in zip(self._slack(region), ("before the start", "past the end"), strict=True):
                if not (slack == CANARY).all():
                    return f"{side} of {region.name}"
        if self.layout.spacing is Spacing.DENSE and not (self._last_line() == CANARY).all():
            return "past the end of the last output"
        return None

    def close(self) -> None:
        """Give up the files, and the memory unless views of it are still held: it goes when they go."""
        for fd in (self.inputs_fd, self.outputs_fd):
            os.close(fd)
        for memory in (self._inputs, self._outputs):
            with suppress(BufferError):
                memory.close()

    def _slack(self, region: Region) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Bytes of a buffer's pages before its data and after it, in all sets."""
        end = region.data + region.nbytes
        return self._columns(region, 0, region.data), self._columns(region, end, region.size - end)

    def _last_line(self) -> NDArray[np.uint8]:
        end = self.sets * self.layout.output_stride.in_file
        return np.frombuffer(self._outputs, dtype=np.uint8, count=ALIGNMENT, offset=end)

    def _columns(self, region: Region, offset: int, count: int) -> NDArray[np.uint8]:
        memory = self._outputs if region.output else self._inputs
        stride = self.layout.stride(output=region.output).in_file
        begin = region.in_file + offset
        whole = np.frombuffer(memory, dtype=np.uint8)
        return as_strided(whole[min(begin, whole.size) :], shape=(self.sets, count), strides=(stride, 1))


F_SEAL_FUTURE_WRITE = 0x10
"""Linux 5.1; absent from Python's fcntl. No new writable mapping and no write(2), while ours stays."""


def turns(first_set: int, calls: int, sets: int) -> tuple[tuple[int, int], ...]:
    """The sets that ``calls`` calls from ``first_set`` on are made on, as one stretch or two: begin and end."""
    begin, count = first_set % sets, min(calls, sets)
    end = begin + count
    return ((begin, end),) if end <= sets else ((begin, sets), (0, end - sets))


def flush(memory: Any, offset: int, count: int) -> None:
    """Have no cache hold these bytes of a mapping, at whatever address anybody has them."""
    whole = np.frombuffer(memory, dtype=np.uint8)
    stopwatch().ke_flush(whole.ctypes.data + offset, count)


def _map(fd: int, size: int) -> mmap.mmap:
    os.ftruncate(fd, max(size, mmap.PAGESIZE))
    return mmap.mmap(fd, max(size, mmap.PAGESIZE), flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
