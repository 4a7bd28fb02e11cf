"""A candidate's process, from the controller's side.

One process per candidate, in a box. The controller owns the clock (``Ran.elapsed_ns``), the inputs and the outputs;
of what the process itself says only evidence is kept. Statuses decided here are tabled in ``ending``.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from evaluator_svc import syscalls
from evaluator_svc.runner import ending, protocol
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.program import machine_sandbox, runtime_mounts, stopwatch
from evaluator_svc.sandbox import Box, Boxed, Limits, Mount
from evaluator_svc.tensors import TensorSpec
from shared.errors import Fatal
from shared.events import Status

T = TypeVar("T")
KEPT_PAGES = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483648",
    "MALLOC_TOP_PAD_": "268435456",
}
"""glibc keeps freed pages, for kernels and baselines alike: else page faults are timed, and charged to one side."""
LIBRARY = "/ke/kernel.so"
PROGRAM_BYTES = 1 << 29
"""Address space of the runner program itself: libraries, stack, and the heap's pad of ``MALLOC_TOP_PAD_``."""
OUTPUT_BYTES = 1 << 20
"""What a kernel may print before it is killed."""
START_TIMEOUT_S = 20.0
END_TIMEOUT_S = 2.0
SPOKE = "spoke on the result channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    """Memory a kernel may allocate besides its buffers (bytes), processor time (s) and time to load (s)."""

    memory_bytes: int = 2 << 30
    cpu_s: int = 600
    load_s: float = 10.0
    stack_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A block of calls that came back. Times in ns.

    ``elapsed_ns``: the controller's clock, around the block. ``runner_ns``: the runner's clock, evidence.
    ``cpu_ns``: processor time of the whole process as the kernel accounts it. ``return_code``: of ke_launch.
    """

    elapsed_ns: int
    runner_ns: int
    cpu_ns: int
    return_code: int


class Runner:
    """Use as an asynchronous context manager. A kernel that cannot be loaded fails its first ``run``."""

    def __init__(
        self,
        library: Path,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        sets: int,
        limits: RunnerLimits,
        threads: int,
        cpus: tuple[int, ...],
    ) -> None:
        self.sandbox = ""
        self.failure: RunFailure | None = None
        self._library, self._inputs, self._outputs = library, tuple(inputs), tuple(outputs)
        self._sets, self._limits, self._threads, self._cpus = sets, limits, threads, cpus
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="runner")
        self._buffers = Buffers(inputs, outputs, sets)
        self._sequence = 1
        self._pid = 0
        self._boxed: Boxed | None = None

    @classmethod
    def open(
        cls,
        library: Path,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        sets: int = 1,
        limits: RunnerLimits | None = None,
        threads: int = 1,
        cpus: tuple[int, ...] = (),
    ) -> Self:
        """Prepare buffers; the process starts on entering the context.

        ``sets`` copies of all tensors, over which calls rotate. ``cpus`` empty: not pinned.
        """
        return cls(library, inputs, outputs, sets=sets, limits=limits or RunnerLimits(), threads=threads, cpus=cpus)

    async def __aenter__(self) -> Self:
        await self._in_thread(self._start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self._in_thread(self._stop)
        finally:
            self._thread.shutdown(wait=False)

    def write_input(self, set_: int, index: int, data: Any) -> None:
        """Fill an input from anything with the buffer protocol, exactly ``nbytes`` long."""
        self._buffers.write(set_, index, data)

    def input_bytes(self, set_: int, index: int) -> memoryview:
        """The input as the controller's memory holds it; the runner cannot write there."""
        return self._buffers.view(set_, index, output=False)

    def output_bytes(self, set_: int, index: int) -> memoryview:
        """The output, to read or to poison."""
        return self._buffers.view(set_, index, output=True)

    def slack_intact(self) -> str | None:
        """None, or which bytes outside the buffers were overwritten."""
        return self._buffers.slack_broken()

    def printed(self, most: int = 4096) -> str:
        """The beginning of what the kernel wrote to its standard output and error: for logs only."""
        return os.pread(self._output, most, 0).decode("utf-8", "replace")

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure:
        """Call the kernel ``calls`` times, call i on set ``(first_set + i) mod sets``; stops at a non-zero return."""
        if self.failure is None:
            outcome = await self._in_thread(lambda: self._run(calls, first_set, timeout_s))
            if isinstance(outcome, Ran):
                return outcome
            self.failure = outcome
        return self.failure

    # --- below: the runner's own thread ---

    async def _in_thread(self, work: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if self._boxed is not None:
                self._boxed.kill()
            raise

    def _start(self) -> None:
        page = os.memfd_create("ke-report")
        os.ftruncate(page, mmap.PAGESIZE)
        self._page = mmap.mmap(page, mmap.PAGESIZE)
        self._output = os.memfd_create("ke-printed")
        commands, self._command = os.pipe()
        self._reply, replies = os.pipe()
        sandbox = machine_sandbox()
        kernel = Mount(source=self._library, target=LIBRARY)
        threads = {"OMP_NUM_THREADS": str(self._threads), "OMP_WAIT_POLICY": "PASSIVE", "OMP_DYNAMIC": "false"}
        box = Box(mounts=(*runtime_mounts(), kernel), environment={**KEPT_PAGES, **threads})
        fds = (page, self._buffers.inputs_fd, self._buffers.outputs_fd, commands, replies)
        configuration = os.memfd_create("ke-configuration")
        os.write(
            configuration,
            protocol.configuration(
                confinement=sandbox.confinement(box, self._box_limits(), syscalls.runner_filter(loading=True)),
                loaded_filter=syscalls.runner_filter(loading=False),
                library=sandbox.path(kernel),
                fds=fds,
                cpus=self._cpus,
                inputs=self._inputs,
                outputs=self._outputs,
                sets=self._sets,
                layout=self._buffers.layout,
            ),
        )
        os.lseek(configuration, 0, os.SEEK_SET)
        try:
            self._boxed = sandbox.start(
                ["run", str(configuration)], box, fds=(configuration, *fds), output=self._output
            )
        finally:
            for fd in (configuration, page, commands, replies):
                os.close(fd)
        ready, _ = self._exchange(b"", START_TIMEOUT_S)
        if not isinstance(ready, protocol.Reply):
            self._boxed.kill()
            raise Fatal(f"the runner did not start: {self.printed() or self._boxed.process.returncode}")
        self.sandbox = sandbox.level(ready.code)
        self._pid = self._boxed.first_process()
        loaded, _ = self._exchange(protocol.command(calls=0, first_set=0, sequence=1), self._limits.load_s)
        self.failure = loaded if isinstance(loaded, RunFailure) else None
        if isinstance(loaded, protocol.Reply) and loaded.kind == protocol.Kind.LOAD:
            self.failure = ending.failure(Status.LAUNCH_FAILED, load=protocol.report(self._page[:]).text)

    def _box_limits(self) -> Limits:
        return Limits(
            address_space=self._limits.memory_bytes + self._buffers.layout.span + PROGRAM_BYTES,
            cpu_s=self._limits.cpu_s,
            file_bytes=OUTPUT_BYTES,
            processes=256,
            stack_bytes=self._limits.stack_bytes,
        )

    def _run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        self._sequence += 1
        command = protocol.command(calls=calls, first_set=first_set, sequence=self._sequence)
        before = self._cpu_ns()
        answer, elapsed = self._exchange(command, timeout_s)
        if isinstance(answer, RunFailure):
            return answer
        if answer.sequence != self._sequence:
            return self._end(ending.failure(Status.CHEAT, channel=SPOKE))
        if answer.kind != protocol.Kind.NONE:
            return self._end(ending.thrown(protocol.report(self._page[:]), answer.kind))
        alive = self._threads_alive()
        if alive > self._threads:
            return self._end(
                ending.failure(Status.CHEAT, threads=f"{alive} alive after a call, {self._threads} granted")
            )
        return Ran(
            elapsed_ns=elapsed,
            runner_ns=answer.spent_ns,
            cpu_ns=self._cpu_ns() - before,
            return_code=answer.code,
        )

    def _exchange(self, command: bytes, timeout_s: float) -> tuple[protocol.Reply | RunFailure, int]:
        # One byte more than a reply, so that two replies at once are noticed.
        answer = ctypes.create_string_buffer(protocol.REPLY.size + 1)
        elapsed = ctypes.c_int64()
        got = stopwatch().ke_round_trip(
            self._command, command, len(command), self._reply, answer, len(answer), int(timeout_s * 1000), elapsed
        )
        if got == -1:
            return self._end(ending.failure(Status.TIMEOUT, limit_s=f"{timeout_s:g}")), 0
        if got <= 0:
            return self._end(None), 0
        reply = protocol.reply(answer.raw[:got])
        return (reply or self._end(ending.failure(Status.CHEAT, channel=SPOKE))), elapsed.value

    def _end(self, cause: RunFailure | None) -> RunFailure:
        """Kill the box; without a known cause, find out why it ended."""
        assert self._boxed is not None
        status = None if cause else self._boxed.wait(END_TIMEOUT_S)
        self._boxed.kill()
        return cause or ending.classify(protocol.report(self._page[:]), status, self._buffers.layout)

    def _cpu_ns(self) -> int:
        # CPUCLOCK_SCHED of another process, numbered as in <linux/posix-timers.h>.
        return time.clock_gettime_ns(~self._pid << 3 | 2)

    def _threads_alive(self) -> int:
        """Threads of the process as the kernel counts them: field 20 of /proc/PID/stat, after the name in brackets."""
        return int(Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[17])

    def _stop(self) -> None:
        if self._boxed is not None:
            self._boxed.kill()
        for fd in (self._command, self._reply, self._output):
            os.close(fd)
        self._buffers.close()
