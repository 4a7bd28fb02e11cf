"""A candidate's process, from the controller's side.

One process per candidate, in a box. The controller owns the clock (``Ran.elapsed_ns``), the inputs and the outputs;
of what the process itself says only evidence is kept. Statuses decided here are tabled in ``ending``.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.runner import ending
from evaluator_svc.runner.box import KEPT_PAGES, RunnerBox, RunnerLimits
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.host_outputs import HostOutputs
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.runner.protocol import Kind
from evaluator_svc.tensors import TensorSpec

__all__ = ["KEPT_PAGES", "Ran", "RunFailure", "Runner", "RunnerLimits"]

T = TypeVar("T")
SETTLE_CPU_NS = 100_000
"""Processor time between the answer to one command and that to an empty one: 20 to 50 µs, and on a busy machine more
now and then, because interrupts, and what a hypervisor takes, are accounted to whom they hit. A kernel that answers for
the runner before it is done, to stop the controller's clock, needs what it still has to do; so all above this is
charged to the call, and makes nobody faster."""
HIDDEN_NS, HIDDEN_EACH_NS, HIDDEN_SHARE = 2_000_000, 100_000, 0.2
"""Work after answers, in sum, for each command, and as a share of all the work, that no accident explains: more of it
is an accusation."""
IDLE_NS, IDLE_EACH_NS, IDLE_SHARE = 4_000_000, 100_000, 0.01
"""Processor time between commands, in sum, for each pause, and as a share of the pauses: others are timed then, and a
kernel that is busy meanwhile slows them down. One pause accuses nobody: a hypervisor takes the processor for some 2 ms
at a time, which are accounted to whom they hit. What was worked is charged to the call that follows in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A block of calls that came back. Times in ns.

    ``elapsed_ns``: the controller's clock, around the block. ``runner_ns``: the runner's clock, evidence.
    ``cpu_ns``: processor time of the whole process as the kernel accounts it, since the answer before (hosted: since it
    was woken). ``return_code``: of ke_launch.
    ``device_ns``: events of a GPU around the calls, where its own process keeps them. ``on_device``: it works on a GPU,
    so that its processor time says little. ``settle_ns``: the controller's clock around
    the empty command that followed.
    """

    elapsed_ns: int
    runner_ns: int
    cpu_ns: int
    return_code: int
    device_ns: int | None = None
    on_device: bool = False
    settle_ns: int | None = None


class Runner(HostOutputs):
    """Use as an asynchronous context manager. A kernel that cannot be loaded fails its first ``run``.

    After a failure the process is gone, ``failure`` holds the reason, and every further ``run`` returns it.
    """

    cools_outputs = True
    """``cool`` reaches the outputs, too."""

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
        stained: bool,
        persistent: int,
        spacing: Spacing,
    ) -> None:
        self.sandbox = ""
        self.failure: RunFailure | None = None
        self._library, self._limits, self._threads, self._cpus = library, limits, threads, cpus
        self._stained, self._persistent = stained, persistent
        self._weights = b""
        self._digests: dict[int, bytes] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="runner")
        self._buffers = Buffers(inputs, outputs, sets, spacing)
        self._box: RunnerBox | None = None
        self._ended = self._cpu_ended = 0
        """When the last command was over, and the processor time used until then; 0 before the first."""
        self._hidden = self._worked = self._commands = self._idled = self._paused = 0
        """Processor time after answers, beyond what they need, and until them; how many there were; processor time in
        the pauses between, and these."""

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
        stained: bool = False,
        persistent: int = 0,
        spacing: Spacing = Spacing.GUARDED,
    ) -> Self:
        """Prepare buffers; the process starts on entering the context.

        ``sets`` copies of all tensors, over which calls rotate. ``cpus`` empty: not pinned. A kernel may have
        ``threads`` threads alive between calls. ``stained``: memory it allocates and stack it has not written hold
        other values each time (slower: for checking, never for timing). ``persistent``: so many inputs, the last ones,
        keep their values for a process' life, by the operator's contract: a call on others is made in a new process.
        ``spacing``: what lies between buffers.
        """
        return cls(
            library,
            inputs,
            outputs,
            sets=sets,
            limits=limits or RunnerLimits(),
            threads=threads,
            cpus=cpus,
            stained=stained,
            persistent=persistent,
            spacing=spacing,
        )

    async def __aenter__(self) -> Self:
        """Start the box and load the kernel.

        Raises:
            ChipError: no compiler to build the runner program with.
            Fatal: the box did not start.
        """
        try:
            await self._in_thread(self._start)
        except BaseException:
            self._thread.submit(self._stop)
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        try:
            await self._in_thread(self._stop)
        finally:
            self._thread.shutdown(wait=False)

    @property
    def sets(self) -> int:
        """Copies of all tensors that there are."""
        return self._buffers.sets

    def write_input(self, set_: int, index: int, data: Any) -> None:
        """Fill an input from anything with the buffer protocol, exactly ``nbytes`` long."""
        self._buffers.write(set_, index, data)
        self._digests.pop(set_, None)

    def write_sets(self, sets: Sequence[int], index: int, data: NDArray[np.uint8]) -> None:
        """Fill an input of several sets with the same bytes. Persistent ones that hold them already are left alone."""
        if index >= len(self._buffers.inputs) - self._persistent:
            rows = self._buffers.rows(index, output=False)
            sets = [set_ for set_ in sets if not np.array_equal(rows[set_], data)]
            for set_ in sets:
                self._digests.pop(set_, None)
        self._buffers.write_sets(sets, index, data)

    def input_bytes(self, set_: int, index: int) -> memoryview:
        """The input as the controller's memory holds it; the runner cannot write there."""
        return self._buffers.view(set_, index, output=False)

    def output_bytes(self, set_: int, index: int) -> memoryview:
        """The output, to read or to poison."""
        return self._buffers.view(set_, index, output=True)

    def output_rows(self, index: int) -> NDArray[np.uint8]:
        """One output in all sets, to read or to poison: sets x bytes."""
        return self._buffers.rows(index, output=True)

    def cool(self, first_set: int, calls: int) -> None:
        """Have no cache hold a byte of the sets that ``calls`` calls from ``first_set`` on are made on."""
        self._buffers.cool(first_set, calls)

    def slack_intact(self) -> str | None:
        """None, or which bytes outside the outputs were overwritten; ``run`` checks this too."""
        return self._buffers.slack_broken()

    def printed(self, most: int = 4096) -> str:
        """The beginning of what the kernel wrote to its standard output and error: for logs only."""
        return self._box.printed(most) if self._box is not None else ""

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure:
        """Call the kernel ``calls`` times, call i on set ``(first_set + i) mod sets``; stop at a non-zero return.

        With ``calls`` 0 the elapsed time is that of the round trip alone.
        """
        sets = [(first_set + i) % self._buffers.sets for i in range(min(calls, self._buffers.sets))]
        if self._persistent and len({self._digest(set_) for set_ in sets}) > 1:  # a process for each
            ran = [await self.run(1, set_, timeout_s) for set_ in sets]
            return next((one for one in ran if isinstance(one, RunFailure) or one.return_code != 0), ran[-1])
        if self.failure is None:
            outcome = await self._in_thread(lambda: self._renewed(calls, first_set, timeout_s))
            if isinstance(outcome, Ran):
                return outcome
            self.failure = outcome
        return self.failure

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in the runner's own thread; cancelling ends the candidate, and so the work."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if self._box is not None:
                self._box.interrupt()
            raise

    def _start(self) -> None:
        self._box = RunnerBox(
            self._library,
            self._buffers,
            limits=self._limits,
            threads=self._threads,
            cpus=self._cpus,
            stained=self._stained,
        )
        self.sandbox = self._box.level
        self.failure = self._box.load()

    def _stop(self) -> None:
        if self._box is not None:
            self._box.close()
        self._buffers.close()

    def _renewed(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        """In a new process where the weights are others."""
        if self._persistent and calls:
            weights = self._digest(first_set)
            if self._weights not in (b"", weights) and self._box is not None:
                self._box.close()
                self._ended = 0
                self._start()
                if self.failure is not None:
                    return self.failure
            self._weights = weights
        return self._run(calls, first_set, timeout_s)

    def _digest(self, set_: int) -> bytes:
        """Of the inputs that are persistent."""
        if set_ not in self._digests:
            digest, count = hashlib.sha256(), len(self._buffers.inputs)
            for index in range(count - self._persistent, count):
                digest.update(self.input_bytes(set_, index))
            self._digests[set_] = digest.digest()
        return self._digests[set_]

    def _run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        box = self._box
        assert box is not None, "enter the context first"
        try:
            before, begun = box.cpu_ns(), time.monotonic_ns()
            idle, pause, paused = before - self._cpu_ended, begun - self._ended, self._ended > 0
            if paused:
                self._idled, self._paused = self._idled + idle, self._paused + pause
            if self._idled > IDLE_NS + IDLE_EACH_NS * self._commands + IDLE_SHARE * self._paused:
                return box.end(ending.busy_between(self._idled, self._paused))
            answer, elapsed = box.ask(calls=calls, first_set=first_set, timeout_s=timeout_s)
            if isinstance(answer, RunFailure):
                return answer
            if answer.kind != Kind.NONE:
                return box.end(ending.thrown(box.report(), answer.kind))
            answered = box.cpu_ns()
            alive = box.threads_alive()
            # Ask again: a kernel that answered for itself is still running, and its true answer comes now.
            settled, settle_ns = box.ask(calls=0, first_set=0, timeout_s=timeout_s)
            if isinstance(settled, RunFailure):
                return settled
            self._cpu_ended = ended = box.cpu_ns()
            self._ended = time.monotonic_ns()
        except OSError:  # the process ended between two questions
            return box.end(None)
        if answer.code != 0 and box.report().refused:
            return box.end(ending.refused(box.report(), answer.code))
        if alive > self._threads:
            return box.end(ending.left_threads(alive, self._threads))
        late = max(0, ended - answered - SETTLE_CPU_NS)
        self._hidden, self._worked = self._hidden + late, self._worked + answered - before
        self._commands += 1
        if self._hidden > HIDDEN_NS + HIDDEN_EACH_NS * self._commands + HIDDEN_SHARE * self._worked:
            return box.end(ending.went_on(self._hidden))
        broken = self._buffers.slack_broken()
        if broken is not None:
            return box.end(ending.overran(broken))
        # What was worked since the answer before is charged to this call, whose inputs lay ready meanwhile.
        spent = ended - before + (idle if paused else 0)
        return Ran(
            elapsed_ns=elapsed + late,
            runner_ns=answer.spent_ns,
            cpu_ns=spent,
            return_code=answer.code,
            settle_ns=settle_ns,
        )
