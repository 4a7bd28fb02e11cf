"""The controller's side of a runner's buffers: two memory files, filled, poisoned and read here."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from evaluator_svc.runner.layout import Layout, Region, plan
from evaluator_svc.tensors import TensorSpec

CANARY = 0xA5


class Buffers:
    """``inputs_fd`` opens the input file read-only and sealed, so that a runner can never map it writable."""

    def __init__(self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int) -> None:
        self.inputs, self.outputs, self.sets = tuple(inputs), tuple(outputs), sets
        self.layout: Layout = plan(inputs, outputs, sets)
        writable = os.memfd_create("ke-inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._inputs = _map(writable, self.layout.inputs_bytes)
        fcntl.fcntl(writable, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
        self.inputs_fd = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(writable)
        self.outputs_fd = os.memfd_create("ke-outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._outputs = _map(self.outputs_fd, self.layout.outputs_bytes)
        fcntl.fcntl(self.outputs_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._regions = {(r.set_, r.index, r.output): r for r in self.layout.regions}
        for region in self.layout.regions:
            pages = self._pages(region)
            pages[: region.data] = bytes([CANARY]) * region.data
            pages[region.data + region.nbytes :] = bytes([CANARY]) * (region.size - region.data - region.nbytes)

    def view(self, set_: int, index: int, *, output: bool) -> memoryview:
        """Writable bytes of one tensor, ``nbytes`` long."""
        region = self._regions[set_, index, output]
        return self._pages(region)[region.data : region.data + region.nbytes]

    def write(self, set_: int, index: int, data: Any) -> None:
        """Fill an input from anything with the buffer protocol."""
        view = self.view(set_, index, output=False)
        source = memoryview(data)
        view[:] = source.cast("B") if source.nbytes else b""

    def slack_broken(self) -> str | None:
        """Which bytes outside an output were written, or None."""
        for region in self.layout.regions:
            if not region.output:  # the runner cannot write there
                continue
            pages = self._pages(region)
            before = bytes(pages[: region.data])
            after = bytes(pages[region.data + region.nbytes :])
            for side, slack in (("before the start", before), ("past the end", after)):
                if slack.count(CANARY) != len(slack):
                    return f"{side} of {region.name}"
        return None

    def close(self) -> None:
        """Give up the files, and the memory unless views of it are still held: it goes when they go."""
        for fd in (self.inputs_fd, self.outputs_fd):
            os.close(fd)
        for memory in (self._inputs, self._outputs):
            with suppress(BufferError):
                memory.close()

    def _pages(self, region: Region) -> memoryview:
        whole = memoryview(self._outputs if region.output else self._inputs)
        return whole[region.in_file : region.in_file + region.size]


F_SEAL_FUTURE_WRITE = 0x10
"""Linux 5.1; absent from Python's fcntl. No new writable mapping and no write(2), while ours stays."""


def _map(fd: int, size: int) -> mmap.mmap:
    os.ftruncate(fd, max(size, mmap.PAGESIZE))
    return mmap.mmap(fd, max(size, mmap.PAGESIZE), flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
