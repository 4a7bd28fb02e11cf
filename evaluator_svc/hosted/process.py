"""A Python-hosted candidate, from the controller's side: the same promises as ``runner.process.Runner``.

After a successful ``run`` the output views hold what the controller itself read from the frozen candidate's memory, so
whatever they held before (poison) is gone. What poison does for a C kernel, other means do here: memory that the
candidate allocates is stained while it is checked, and its results are judged on values it has not seen.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from evaluator_svc.hosted import outputs as contract
from evaluator_svc.hosted import wire
from evaluator_svc.hosted.box import INTERPRETED, PYTHON, Profile
from evaluator_svc.hosted.child import Candidate, Child
from evaluator_svc.hosted.strided import Strided
from evaluator_svc.hosted.wire import Kind, Verb
from evaluator_svc.hosted.zygote import Hosts
from evaluator_svc.layers import Layer
from evaluator_svc.runner import ending
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure, failure
from evaluator_svc.runner.process import Ran
from evaluator_svc.runner.protocol import Report
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built
from shared.events import Status

__all__ = ["INTERPRETED", "PYTHON", "HostedRunner", "Hosts", "Profile"]

T = TypeVar("T")
PRIMING_CALLS = 2


class HostedRunner:
    """Use as an asynchronous context manager. A module that cannot be loaded fails its first ``run``.

    After a failure the process is gone, ``failure`` holds the reason, and every further ``run`` returns it.
    """

    def __init__(
        self,
        hosts: Hosts,
        profile: Profile,
        candidate: Candidate,
        buffers: Buffers,
        limits: RunnerLimits,
        *,
        primer: Sequence[Any] | None,
        primed: bool,
    ) -> None:
        self.sandbox = ""
        self.failure: RunFailure | None = None
        self.exporting = False
        """Results were copied by the candidate's side: this machine lets the controller read no memory of others."""
        self._hosts, self._profile, self._candidate, self._limits = hosts, profile, candidate, limits
        self._primer, self._primed = primer, primed
        self._threads = candidate.threads
        self._buffers = buffers
        self._inputs = os.fstat(buffers.inputs_fd)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hosted")
        self._child: Child | None = None

    @classmethod
    def open(
        cls,
        hosts: Hosts,
        built: Built,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        *,
        signature: Signature,
        sets: int = 1,
        limits: RunnerLimits | None = None,
        threads: int = 1,
        cpus: tuple[int, ...] = (),
        stained: bool = False,
        mutates: tuple[int, ...] = (),
        persistent_weights: bool = False,
        primer: Sequence[Any] | None = None,
        profile: Profile = PYTHON,
        where: str = "operator",
    ) -> Self:
        """Prepare buffers; the process is forked on entering the context.

        ``inputs``: tensor arguments, then state. ``outputs``: what forward returns, then the new values of the inputs
        that the operator ``mutates``, which the candidate is given as private copies, filled anew before every call.
        ``primer``: inputs, one buffer each, of the calls that warm the kernel up before it is sealed: values that need
        not stay unknown to it, e.g. the suite's first case, which is repeated anyway. Without them it is warmed up on
        zeros, and not at all where the operator declares ``persistent_weights``: the first call may pack them, so the
        caller gives every call of this process the same ones. Else as ``Runner.open``.

        Raises:
            OperatorError: the operator takes what a hosted kernel cannot be given; ``where`` names it.
        """
        signature.check(where=where)
        told = {
            "text": built.path.read_text(encoding="utf-8"),
            "signature": signature.plain(),
            "device": profile.device,
            "interpreted": profile.interpreted,
            "threads": threads,
            "sets": sets,
            "inputs": [[list(spec.shape), spec.dtype.value] for spec in inputs],
            "outputs": len(outputs),
            "output_bytes": [spec.nbytes for spec in outputs],
            "mutates": list(mutates),
            "stained": stained,
        }
        candidate = Candidate(told=told, extensions=built.extensions, threads=threads, cpus=cpus, stained=stained)
        return cls(
            hosts,
            profile,
            candidate,
            Buffers(inputs, outputs, sets),
            limits or RunnerLimits(),
            primer=primer,
            primed=primer is not None or not persistent_weights,
        )

    async def __aenter__(self) -> Self:
        """Fork, confine, load, warm up and seal.

        Raises:
            ChipError: no compiler to build the project's own library with, or nothing confines a candidate here.
            Fatal: the process did not start.
            Retryable: the fork server was lost meanwhile.
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

    def write_input(self, set_: int, index: int, data: Any) -> None:
        """Fill an input from anything with the buffer protocol, exactly ``nbytes`` long."""
        self._buffers.write(set_, index, data)

    def input_bytes(self, set_: int, index: int) -> memoryview:
        """The input as the controller's memory holds it; the candidate cannot write there."""
        return self._buffers.view(set_, index, output=False)

    def output_bytes(self, set_: int, index: int) -> memoryview:
        """The output that the controller read after the last ``run`` on the set."""
        return self._buffers.view(set_, index, output=True)

    def slack_intact(self) -> str | None:
        """Outputs are the controller's own memory: nothing can run over their ends but where results are copied."""
        return self._buffers.slack_broken()

    def printed(self, most: int = 4096) -> str:
        """The beginning of what the kernel wrote to its standard output and error: for logs only."""
        return self._child.printed(most) if self._child is not None else ""

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure:
        """Call the kernel ``calls`` times, call i on set ``(first_set + i) mod sets``.

        Where no set is used twice, each call's results are read before the next call: a kernel may return the same
        buffer each time. Else results are read at the end, of each set the last. With ``calls`` 0 the elapsed time is
        that of the round trip alone.
        """
        sets = self._buffers.sets
        steps = [(1, (first_set + i) % sets) for i in range(calls)] if 1 < calls <= sets else [(calls, first_set)]
        total = Ran(elapsed_ns=0, runner_ns=0, cpu_ns=0, return_code=0)
        for count, first in steps:
            if self.failure is None:
                outcome = await self._in_thread(partial(self._run, count, first, timeout_s))
                if isinstance(outcome, Ran):
                    total = _sum(total, outcome)
                    continue
                self.failure = outcome
            return self.failure
        return total

    async def audit(self, set_: int = 0, timeout_s: float = 60.0) -> str | RunFailure:
        """One more call, on what ``set_`` holds, with the kernels counted that it launches: JSON, evidence only."""
        if self.failure is None:
            outcome = await self._in_thread(lambda: self._audit(set_, timeout_s))
            if isinstance(outcome, str):
                return outcome
            self.failure = outcome
        return self.failure

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work in the runner's own thread; cancelling ends the candidate, and so the work."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if self._child is not None:
                self._child.interrupt()
            raise

    def _start(self) -> None:
        child = Child(self._hosts.zygote(self._profile), self._candidate, self._buffers, self._limits)
        self._child, self.sandbox, self.exporting = child, child.level, child.exporting
        self._base = child.report().base
        self.failure = self._loaded(child)

    def _loaded(self, child: Child) -> RunFailure | None:
        """Load, warm up, seal."""
        limit = self._limits.load_s
        for index, data in enumerate(self._primer or ()):
            for set_ in range(self._buffers.sets):
                self.write_input(set_, index, data)
        verbs = [Verb.LOAD, *([Verb.PRIME] if self._primed else []), Verb.SEAL]
        for verb in verbs:
            calls = PRIMING_CALLS if verb is Verb.PRIME else 0
            answer, _ = child.ask(verb, calls=calls, timeout_s=limit)
            if isinstance(answer, RunFailure):
                return answer
            failed = _thrown(child.report(), answer.kind)
            if failed is not None:
                return child.end(failed)
        if child.sealed() is False:
            return child.end(failure(Status.CHEAT, Layer.SANDBOX, forbidden="keeping the filter off that seals it"))
        return None

    def _stop(self) -> None:
        if self._child is not None:
            self._child.close()
        self._buffers.close()

    def _run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        child = self._child
        assert child is not None, "enter the context first"
        observed = child.observed
        try:
            before = observed.cpu_ns()
            answer, elapsed = child.ask(
                Verb.RUN if calls else Verb.SETTLE, calls=calls, first_set=first_set, timeout_s=timeout_s
            )
            if isinstance(answer, RunFailure):
                return answer
            observed.freeze()
            failed = _thrown(child.report(), answer.kind) or self._survivors(child)
            if failed is None and calls:
                failed = self._read(child, {(first_set + i) % self._buffers.sets for i in range(calls)})
            if failed is not None:
                return child.end(failed)
            observed.thaw()
            # Ask again: a kernel that answered for itself is still running, and its true answer comes now.
            settled, _ = child.ask(Verb.SETTLE, timeout_s=timeout_s)
            if isinstance(settled, RunFailure):
                return settled
            spent = observed.cpu_ns() - before
        except OSError:  # the process ended between two questions
            return child.end(None)
        return Ran(elapsed_ns=elapsed, runner_ns=answer.spent_ns, cpu_ns=spent, return_code=0)

    def _survivors(self, child: Child) -> RunFailure | None:
        """What outlives a call: threads beyond the grant, processes."""
        alive, others = child.observed.threads_alive(), child.observed.others()
        if alive > self._threads:
            return ending.left_threads(alive, self._threads)
        if others:
            return failure(Status.CHEAT, Layer.THREADS, processes=f"{others} alive after a call")
        return None

    def _read(self, child: Child, sets: set[int]) -> RunFailure | None:
        """Fill the output views of ``sets`` from the frozen candidate's memory; or why that cannot be."""
        page = child.page()
        specs, remark = self._buffers.outputs, wire.read_text(page)
        for set_ in sorted(sets):
            placed: list[Strided] = []
            for output, spec in enumerate(specs):
                result = wire.unpack(page, set_ * len(specs) + output)
                failed = contract.refused(result, spec, output, remark)
                if failed is not None:
                    return failed
                assert result is not None
                placed.append(contract.strided(result, spec))
                failed = self._fill(child, set_, output, placed[-1])
                if failed is not None:
                    return failed
            failed = contract.shared(placed)
            if failed is not None:
                return failed
        return None

    def _fill(self, child: Child, set_: int, output: int, placed: Strided) -> RunFailure | None:
        if self._base <= placed.address < self._base + self._buffers.layout.span:
            return contract.contract(Status.CHEAT, output, "is the memory of an input", "")
        if child.exporting:
            return None
        wrong = child.memory.where(placed, self._inputs)
        if wrong is not None:
            return contract.contract(Status.CHEAT, output, f"is {wrong}", "")
        child.memory.read(placed, self.output_bytes(set_, output))
        return None

    def _audit(self, set_: int, timeout_s: float) -> str | RunFailure:
        child = self._child
        assert child is not None, "enter the context first"
        answer, _ = child.ask(Verb.AUDIT, first_set=set_, timeout_s=timeout_s)
        if isinstance(answer, RunFailure):
            return answer
        failed = _thrown(child.report(), answer.kind)
        return wire.read_text(child.page()) if failed is None else child.end(failed)


def _thrown(report: Report, kind: int) -> RunFailure | None:
    """What an answer's ``kind`` means for the candidate."""
    if kind == Kind.NONE:
        return None
    if kind == Kind.LOAD and not report.refused:
        return ending.not_loaded(report)
    if kind == Kind.REFUSED:
        return failure(Status.RUNTIME_ERROR, Layer.SANDBOX, forbidden=report.text)
    return ending.thrown(report, kind)


def _sum(one: Ran, other: Ran) -> Ran:
    return Ran(
        elapsed_ns=one.elapsed_ns + other.elapsed_ns,
        runner_ns=one.runner_ns + other.runner_ns,
        cpu_ns=one.cpu_ns + other.cpu_ns,
        return_code=0,
    )
