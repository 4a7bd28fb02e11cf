"""A Python-hosted candidate, from the controller's side: the same promises as ``runner.process.Runner``.

After a successful ``run`` the output views hold what the controller itself read from the frozen candidate's memory, so
whatever they held before (poison) is gone. What poison does for a C kernel, other means do here: memory that the
candidate allocates is stained while it is checked, and its results are judged on values it has not seen.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.hosted.box import INTERPRETED, PYTHON, Profile
from evaluator_svc.hosted.child import Candidate
from evaluator_svc.hosted.session import Session
from evaluator_svc.hosted.zygote import Hosts, Zygote
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.host_outputs import HostOutputs
from evaluator_svc.runner.layout import Spacing
from evaluator_svc.runner.process import Ran
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built

__all__ = ["INTERPRETED", "PYTHON", "HostedRunner", "Hosts", "Profile"]

T = TypeVar("T")


class HostedRunner(HostOutputs):
    """Use as an asynchronous context manager. A module that cannot be loaded fails its first ``run``.

    After a failure the process is gone, ``failure`` holds the reason, and every further ``run`` returns it.
    """

    cools_outputs = False
    """They are the candidate's own memory."""
    first_calls_dearer = True
    """After each pause an interpreter and torch come back into caches that others have used meanwhile: 0.1 to 1 ms."""

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
        persistent: int,
    ) -> None:
        self.sandbox = ""
        self.failure: RunFailure | None = None
        self.exporting = False
        """Results were copied by the candidate's side: this machine lets the controller read no memory of others."""
        self._hosts, self._profile, self._candidate, self._limits = hosts, profile, candidate, limits
        self._primer, self._primed = primer, primed
        self._persistent = persistent
        """How many inputs, the last ones, keep their values for a process' life."""
        self._weights = b""
        self._digests: dict[int, bytes] = {}
        self._buffers, self._outputs = buffers, buffers.outputs
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hosted")
        self._session: Session | None = None
        self._copies: list[NDArray[np.uint8]] = []

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
        spacing: Spacing = Spacing.GUARDED,
        where: str = "operator",
    ) -> Self:
        """Prepare buffers; the process is forked on entering the context.

        ``inputs``: tensor arguments, then state. ``outputs``: what forward returns, then the new values of the inputs
        that the operator ``mutates``, which the candidate is given as private copies, filled anew before every call.
        ``primer``: inputs, one buffer each, of the calls that warm the kernel up before it is sealed: values that need
        not stay unknown to it, e.g. the suite's first case, which is repeated anyway. Without them it is warmed up on
        zeros, and not at all where the operator declares ``persistent_weights``: the first call may pack them. A
        process has the right to one set of those, so a call on other ones is made in a new process. Else as
        ``Runner.open``.

        Raises:
            OperatorError: the operator takes what a hosted kernel cannot be given; ``where`` names it.
        """
        signature.check(where=where)
        told = {
            "text": built.path.read_text(encoding="utf-8"),
            "signature": signature.plain(),
            "device": profile.device,
            "interpreted": profile.interpreted,
            "offline": list(profile.offline),
            "processes": profile.processes,
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
            cls._lent(inputs, outputs, sets, spacing),
            limits or RunnerLimits(),
            primer=primer,
            primed=(primer is not None or not persistent_weights) and not profile.interpreted,
            persistent=len(signature.state) if persistent_weights else 0,
        )

    @classmethod
    def _lent(cls, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], sets: int, spacing: Spacing) -> Buffers:
        """The memory that is shared with the process."""
        return Buffers(inputs, outputs, sets, spacing)

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
        """The input as the controller's memory holds it; the candidate cannot write there."""
        return self._buffers.view(set_, index, output=False)

    def output_bytes(self, set_: int, index: int) -> memoryview:
        """The output that the controller read after the last ``run`` on the set."""
        return self._opened().output(set_, index)

    def output_rows(self, index: int) -> NDArray[np.uint8]:
        """One output in all sets, as the controller read them: sets x bytes."""
        return self._opened().rows(index)

    def cool(self, first_set: int, calls: int) -> None:
        """Have no cache hold an input of the sets that ``calls`` calls from ``first_set`` on are made on."""
        self._buffers.cool(first_set, calls)

    def slack_intact(self) -> str | None:
        """Outputs are the controller's own memory: nothing can run over their ends but where results are copied."""
        return self._buffers.slack_broken()

    def printed(self, most: int = 4096) -> str:
        """The beginning of what the kernel wrote to its standard output and error: for logs only."""
        return self._session.child.printed(most) if self._session is not None else ""

    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure:
        """Call the kernel ``calls`` times, call i on set ``(first_set + i) mod sets``.

        It is one command; results are read at its end, of each set the last. (A kernel that returns the same buffer
        each time has it copied: see ``candidate``.) Sets that hold other persistent weights are commands, and
        processes, of their own. With ``calls`` 0 the elapsed time is that of the round trip alone.
        """
        sets = [(first_set + i) % self.sets for i in range(min(calls, self.sets))]
        apart = self._persistent and len({self._digest(set_) for set_ in sets}) > 1
        steps = [(1, set_) for set_ in sets] if apart else [(calls, first_set)]
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
            outcome = await self._in_thread(partial(self._opened().audit, set_, timeout_s))
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
            if self._session is not None:
                self._session.child.interrupt()
            raise

    def _start(self) -> None:
        session = self._begun(self._hosts.zygote(self._profile))
        self._session, self.sandbox, self.exporting = session, session.child.level, session.child.exporting
        self.failure = session.load(self._primer, primed=self._primed)
        self._digests.clear()
        if self._persistent and self._primer:
            self._weights = self._digest(0)

    def _begun(self, zygote: Zygote) -> Session:
        """A new process."""
        return Session(
            zygote,
            self._candidate,
            self._buffers,
            self._limits,
            self._copies,
            sets=self.sets,
            outputs=self._outputs,
            mutated=len(self._candidate.told["mutates"]),
        )

    def _run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        if self._persistent and calls:
            weights = self._digest(first_set)
            if self._weights not in (b"", weights):
                self._opened().child.close()
                self._primer, self._primed = None, False  # these are not the weights to pack
                self._start()
                if self.failure is not None:
                    return self.failure
            self._weights = weights
        return self._opened().run(calls, first_set, timeout_s)

    def _digest(self, set_: int) -> bytes:
        """Of the inputs that are persistent."""
        if set_ not in self._digests:
            digest, count = hashlib.sha256(), len(self._candidate.told["inputs"])
            for index in range(count - self._persistent, count):
                digest.update(self._weights_of(set_, index))
            self._digests[set_] = digest.digest()
        return self._digests[set_]

    def _weights_of(self, set_: int, index: int) -> Any:
        """An input, in the host's memory."""
        return self.input_bytes(set_, index)

    def _stop(self) -> None:
        if self._session is not None:
            self._session.child.close()
        self._buffers.close()

    def _opened(self) -> Session:
        assert self._session is not None, "enter the context first"
        return self._session


def _sum(one: Ran, other: Ran) -> Ran:
    return Ran(
        elapsed_ns=one.elapsed_ns + other.elapsed_ns,
        runner_ns=one.runner_ns + other.runner_ns,
        cpu_ns=one.cpu_ns + other.cpu_ns,
        return_code=0,
        on_device=other.on_device,
        device_ns=None if other.device_ns is None else (one.device_ns or 0) + other.device_ns,
        settle_ns=other.settle_ns,
    )
