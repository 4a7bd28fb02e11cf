"""A kernel under QEMU, from the controller's side: the port of ``runner.process.Runner``, with counts besides.

Every command is a process of its own, so nothing is kept from one to the next; calls of one command share theirs.
User-mode QEMU gives system calls to the host and checks no address: it is no sandbox. So the process is in a box, its
plugin ends a guest that makes a system call, and where the guest's memory lies is random and secret. The plugin sees an
access beyond that memory after it was made; two counts in two processes, each with another place, have to agree.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import secrets
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evaluator_svc import syscalls
from evaluator_svc.emulated import counts, ending
from evaluator_svc.emulated.counts import Seen
from evaluator_svc.emulated.programs import QEMU, mounts, tool
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure, overran, timed_out
from evaluator_svc.runner.host_outputs import HostOutputs
from evaluator_svc.runner.process import Ran
from evaluator_svc.runner.program import machine_sandbox, runtime_mounts
from evaluator_svc.runner.protocol import MAX_DIMS
from evaluator_svc.sandbox import Box, Boxed, Limits, Mount
from evaluator_svc.tensors import TensorSpec
from shared.chips import VectorUnit
from shared.errors import Fatal

BUFFERS = 1 << 32
"""Where the span of buffers begins in the guest. Bytes, as all addresses."""
RESERVED = 1 << 38
"""The guest's addresses end here."""
PLACES = (1 << 44, 1 << 46)
"""Of the host: the guest's memory begins at a random one."""
PLACE_STEP = 1 << 21
ADDRESS_SPACE = RESERVED + (4 << 30)
JOB_BYTES = 1 << 24
READ, WRITE, SHARED_FIXED, PRIVATE_FIXED = 1, 2, 0x11, 0x12
KERNEL, PLUGIN = "/ke/kernel", "/ke/counter.so"
PRINTED_BYTES = 1 << 16


class EmulatedRunner(HostOutputs):
    """Use as an asynchronous context manager. After a failure every further ``run`` returns it."""

    cools_outputs = False

    def __init__(
        self,
        program: Path,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        unit: VectorUnit,
        sets: int,
    ) -> None:
        self.sandbox = ""
        self.failure: RunFailure | None = None
        self.seen: Seen | None = None
        """Of the latest command that came back."""
        self._program, self._unit = program, unit
        self._buffers = Buffers(inputs, outputs, sets)
        if BUFFERS + self._buffers.layout.span > RESERVED:
            raise Fatal("the operator's tensors do not fit into the emulated machine's addresses")
        self._boxed: Boxed | None = None
        self._printed = ""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._buffers.close()

    def write_input(self, set_: int, index: int, data: Any) -> None:
        self._buffers.write(set_, index, data)

    def input_bytes(self, set_: int, index: int) -> memoryview:
        return self._buffers.view(set_, index, output=False)

    def output_bytes(self, set_: int, index: int) -> memoryview:
        return self._buffers.view(set_, index, output=True)

    def slack_intact(self) -> str | None:
        """Which bytes outside an output were written, or None."""
        return self._buffers.slack_broken()

    def printed(self, most: int) -> str:
        return self._printed[:most]

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure:
        """Call the kernel ``calls`` times in a new process, call i on set ``(first_set + i) mod sets``."""
        if self.failure is not None:
            return self.failure
        running = asyncio.ensure_future(asyncio.to_thread(self._run, calls, first_set, timeout_s))
        try:
            outcome = await asyncio.shield(running)
        except asyncio.CancelledError:
            if self._boxed is not None:
                self._boxed.signal()
            await asyncio.wait([running])
            raise
        if isinstance(outcome, RunFailure):
            self.failure = outcome
        return outcome

    def _run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        page, job, output = (os.memfd_create(name) for name in ("ke-seen", "ke-job", "ke-printed"))
        told, tell = os.pipe()
        try:
            os.ftruncate(page, counts.PAGE_BYTES)
            with mmap.mmap(page, counts.PAGE_BYTES) as shared:
                head = counts.head(calls=calls, reserved=RESERVED, inputs=self._input_ranges())
                shared[: len(head)] = head
                os.write(job, self._job(calls, first_set))
                begun = time.monotonic_ns()
                try:
                    self._boxed = self._start(
                        (page, job, self._buffers.inputs_fd, self._buffers.outputs_fd), tell, output
                    )
                finally:
                    os.close(tell)
                status = self._boxed.wait(timeout_s)
                self._boxed.kill()
                elapsed = time.monotonic_ns() - begun
                seen = counts.parse(shared[:])
            self._printed = os.pread(output, PRINTED_BYTES, 0).decode("utf-8", "replace")
            layers = os.read(told, 4)
        finally:
            for fd in (page, job, output, told):
                os.close(fd)
        if len(layers) != 4:
            raise Fatal(f"the box of QEMU did not start: {self._printed.strip()[:200] or status}")
        self.sandbox = machine_sandbox().level(struct.unpack("<I", layers)[0], self._boxed.user)
        if status is None and ending.broke(seen) is None:
            return timed_out(timeout_s)
        failed = ending.ended(seen, status, calls, self._printed)
        if failed is not None:
            return failed
        broken = self._buffers.slack_broken()
        if broken is not None:
            return overran(broken)
        self.seen = seen
        return Ran(elapsed_ns=elapsed, runner_ns=0, cpu_ns=0, return_code=seen.code)

    def _start(self, fds: tuple[int, int, int, int], tell: int, output: int) -> Boxed:
        sandbox = machine_sandbox()
        page, job, *_ = fds
        kernel = Mount(source=self._program, target=KERNEL, opened_before=True)
        qemu = (*mounts(), kernel)
        box = Box(mounts=tuple({m.target: m for m in (*runtime_mounts(), *qemu)}.values()), own_user=True)
        counter = next(sandbox.path(mount) for mount in qemu if mount.target == PLUGIN)
        low, high = PLACES
        place = low + secrets.randbelow((high - low) // PLACE_STEP) * PLACE_STEP
        command = [
            str(tool(QEMU)),
            *("-cpu", f"rv64,v=true,vext_spec=v1.0,vlen={self._unit.vlen},elen={self._unit.elen}"),
            *("-B", hex(place), "-R", hex(RESERVED)),
            *("-plugin", f"{counter},page={page}"),
            sandbox.path(kernel),
            str(job),
        ]
        limits = Limits(address_space=ADDRESS_SPACE, cpu_s=600, file_bytes=PRINTED_BYTES)
        confinement = sandbox.confinement(box, limits, syscalls.build_filter(kills_itself=True))
        return sandbox.start(
            "exec", confinement + struct.pack("<i", tell), command, box, fds=(*fds, tell), output=output
        )

    def _input_ranges(self) -> list[tuple[int, int]]:
        """Where inputs lie in the guest; what does not fit into the plugin's table is read-only all the same."""
        regions = [r for r in self._buffers.layout.regions if not r.output]
        return [(BUFFERS + r.at, BUFFERS + r.at + r.size) for r in regions[: counts.INPUTS_MAX]]

    def _job(self, calls: int, first_set: int) -> bytes:
        """What ``harness.S`` reads. A write into an input goes to a copy, and is seen by the plugin."""
        layout, fds = self._buffers.layout, (self._buffers.inputs_fd, self._buffers.outputs_fd)
        specs = (self._buffers.inputs, self._buffers.outputs)
        mappings, tensors = b"", b""
        for region in layout.regions:
            how = SHARED_FIXED if region.output else PRIVATE_FIXED
            at = BUFFERS + region.at
            mappings += struct.pack("<6q", at, region.size, READ | WRITE, how, fds[region.output], region.in_file)
        for call in range(calls):
            for output, some in enumerate(specs):
                for index, spec in enumerate(some):
                    region = layout.region((first_set + call) % self._buffers.sets, index, output=bool(output))
                    tensors += _tensor(spec, BUFFERS + region.at + region.data)
        job = struct.pack("<4q", len(layout.regions), calls, len(specs[0]), len(specs[1])) + mappings + tensors
        if len(job) > JOB_BYTES:
            raise Fatal("too many calls for one emulated process")
        return job


def _tensor(spec: TensorSpec, at: int) -> bytes:
    """A ``KeTensor`` of ``ke_abi.h``."""
    strides, step = [0] * len(spec.shape), 1
    for axis in reversed(range(len(spec.shape))):
        strides[axis] = step
        step *= spec.shape[axis]
    padding = [0] * (MAX_DIMS - len(spec.shape))
    return struct.pack("<q16q2i", at, *spec.shape, *padding, *strides, *padding, len(spec.shape), spec.dtype.code)
