"""The order in which a hosted candidate is spoken to: load, warm up, seal, then audited calls. Blocking.

Outside of a command the candidate is frozen: it computes nothing between calls, disturbs nobody who is timed meanwhile,
and between an answer and the reading of its results no instruction of it runs.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import on_host
from evaluator_svc.hosted import wire
from evaluator_svc.hosted.child import CPU, Candidate, Child
from evaluator_svc.hosted.device_memory import DeviceMemory
from evaluator_svc.hosted.device_rest import Rest
from evaluator_svc.hosted.outside import Outside, early_ns
from evaluator_svc.hosted.reading import Reading
from evaluator_svc.hosted.wire import Kind, Verb
from evaluator_svc.hosted.zygote import Zygote
from evaluator_svc.layers import Layer
from evaluator_svc.runner import ending
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure, failure
from evaluator_svc.runner.process import Ran
from evaluator_svc.runner.protocol import Report
from evaluator_svc.tensors import TensorSpec
from shared.errors import Retryable
from shared.events import Status

PRIMING_CALLS = 2
EXIT_S, EXIT_POLL_S = 1.0, 0.001
"""For threads that were joined to be gone. On a busy machine that takes a while; a thread that still computes gains
nothing by it, because results were read before, and are compared afterwards."""
BUSY = "the GPU is busy with others' work"
QUICK_S = 30.0
"""At most, for loading and for warming up where nothing is compiled on first use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Woken:
    """Processor time of a candidate at the beginning of what counts as a call's, and what is charged of before, ns."""

    before: int
    early: int


class Session:
    """One candidate's process from its start. ``outputs``, in ``sets`` sets, of which the last ``mutated`` are new
    values of inputs. ``copies`` keeps what was read of outputs that the candidate can write to: by output, sets x
    bytes. ``kept``: what this process holds on a GPU for it, in the place of ``buffers``. ``rest``: tells that the
    device is at rest, where nobody else has it meanwhile.

    Raises:
        Fatal: the process did not start.
        Retryable: the zygote is gone.
    """

    def __init__(
        self,
        zygote: Zygote,
        candidate: Candidate,
        buffers: Buffers,
        limits: RunnerLimits,
        copies: list[NDArray[np.uint8]],
        *,
        sets: int,
        outputs: Sequence[TensorSpec],
        mutated: int,
        kept: DeviceMemory | None = None,
        rest: Rest | None = None,
    ) -> None:
        self._buffers, self._limits, self._granted = buffers, limits, candidate.threads + zygote.profile.driver_threads
        self._outside = Outside()
        self._sets = sets
        self._stained = candidate.stained
        self._kept, self._rest = kept, rest
        self.child = Child(zygote, candidate, buffers, limits, results=sets * len(outputs), kept=kept is not None)
        self._compiles = zygote.profile.processes
        self._fills = zygote.profile.device != CPU and kept is None
        self._reading = Reading(self.child, buffers, copies, sets=sets, outputs=outputs, mutated=mutated, kept=kept)

    def output(self, set_: int, index: int) -> memoryview:
        """What was read last."""
        return self._reading.output(set_, index)

    def rows(self, index: int) -> NDArray[np.uint8]:
        """The same of all sets."""
        return self._reading.rows(index)

    def load(self, primer: Sequence[Any] | None, *, primed: bool) -> RunFailure | None:
        """Load, warm up on ``primer`` (None: zeros) if ``primed``, seal."""
        for index, data in enumerate(primer or ()):
            if self._kept is not None:
                self._kept.write_sets(range(self._sets), index, data)
                continue
            for set_ in range(self._sets):
                self._buffers.write(set_, index, on_host(data))
        if self._kept is not None:
            self._kept.give(0, self._sets)
        limit = self._limits.load_s if self._compiles else min(self._limits.load_s, QUICK_S)
        failed = self._asked(Verb.LOAD, 0, 0, limit) or (self._prime(limit) if primed else None)
        filtered = "seccomp" in self.child.level.split("+")
        if filtered:
            failed = failed or self._asked(Verb.SEAL, 0, 0, limit)
        if failed is not None:
            return failed
        try:
            self.child.observed.freeze()
            if filtered and self.child.sealed() is False:
                unsealed = failure(Status.CHEAT, Layer.SANDBOX, forbidden="keeps the filter off that seals it")
                return self.child.end(unsealed)
        except OSError:  # it ended just now
            return self.child.end(None)
        return None

    def run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        """A block of calls; the results of the last one on each set are then in the output views."""
        try:
            return self._run(calls, first_set, timeout_s)
        except OSError:  # the process ended between two questions
            return self.child.end(None)

    def audit(self, set_: int, timeout_s: float) -> str | RunFailure:
        """One call with the kernels counted that it launches: what the candidate's side says of it."""
        try:
            if self._kept is not None:
                self._kept.give(set_, 1)
            self.child.observed.thaw()
            failed = self._asked(Verb.AUDIT, 1, set_, timeout_s)
            if failed is not None:
                return failed
            self.child.observed.freeze()
        except OSError:
            return self.child.end(None)
        return wire.read_text(self.child.page())

    def _run(self, calls: int, first_set: int, timeout_s: float) -> Ran | RunFailure:
        child, observed = self.child, self.child.observed
        woken = self._woken(calls, first_set, timeout_s)
        if isinstance(woken, RunFailure):
            return woken
        answer, elapsed = child.ask(
            Verb.RUN if calls else Verb.SETTLE, calls=calls, first_set=first_set, timeout_s=timeout_s
        )
        if isinstance(answer, RunFailure):
            return answer
        late, seen = self._stopped()
        spent = observed.cpu_ns() - woken.before
        self._outside.command(early=woken.early, worked=spent, late=seen)
        failed = self._outside.began_early() or self._restless() or self._outside.went_on()
        if failed is not None:
            return child.end(failed)
        page = child.page()
        sets = sorted({(first_set + i) % self._sets for i in range(calls)})
        failed = (
            _thrown(child.report(), answer.kind) or self._exported(sets, timeout_s) or self._reading.read(page, sets)
        )
        failed = failed or self._mutated(first_set, calls)
        if failed is not None:
            return child.end(failed)
        settle_ns = self._settled(page, sets, timeout_s)
        if isinstance(settle_ns, RunFailure):
            return settle_ns
        clock = wire.read_clock(page) if calls and self._kept is None else None  # of no calls it is the last ones'
        failed = ending.impossible_clock(clock, elapsed)
        if failed is not None:
            return child.end(failed)
        return Ran(
            elapsed_ns=elapsed + woken.early + late,
            runner_ns=answer.spent_ns,
            cpu_ns=spent,
            return_code=0,
            device_ns=clock,
            on_device=child.on_device,
            settle_ns=settle_ns,
        )

    def _woken(self, calls: int, first_set: int, timeout_s: float) -> _Woken | RunFailure:
        """Thaw the candidate and give it the inputs of ``calls`` calls.

        An empty command comes first, so that waking up is not timed; it also meets any answer that came too much. What
        is worked for it counts as the call's, on the wall, too: the new inputs are in place by then.
        """
        child, observed = self.child, self.child.observed
        frozen = observed.cpu_ns()
        if self._kept is not None:
            self._kept.arrays.synchronise()  # what this process still does there is nobody else's work
        failed = self._learned()
        if failed is not None:
            return child.end(failed)
        observed.thaw()
        if self._fills:
            failed = self._asked(Verb.FILL, calls, first_set, timeout_s)
        else:
            failed = self._asked(Verb.SETTLE, 0, 0, timeout_s)
        if failed is not None:
            return failed
        if self._kept is not None and calls:
            # Nothing of its waits on the device for what comes now, and the cache holds nothing of it afterwards.
            failed = self._restless()
            if failed is not None:
                return child.end(failed)
            frozen = observed.cpu_ns()  # what it worked before it had the inputs is no work on them
            self._kept.give(first_set, calls)
            self._kept.flush()
        woken = observed.cpu_ns()
        before = woken if self._fills else frozen
        return _Woken(before=before, early=early_ns(before, woken))

    def _stopped(self) -> tuple[int, int]:
        """Freeze the candidate, whose device first ends what it has still to do: that belongs to the call. How much of
        it is charged, and how much was seen, ns.
        """
        charged = seen = 0
        if self._rest is not None:
            self.child.observed.stop()  # freezing stops a processor only
            waited = self._rest.waited()
            charged, seen = waited.charged, waited.seen
        self.child.observed.freeze()
        return charged, seen

    def _settled(self, page: bytes, sets: Sequence[int], timeout_s: float) -> int | RunFailure:
        """Ask again: a kernel that answered for itself is still running, and its true answer comes now. The time of
        that, ns; or what outlived the block or came after it.
        """
        child, observed = self.child, self.child.observed
        crowded = observed.threads_alive() > self._granted
        failed = self._survivors()
        if failed is not None:
            return child.end(failed)
        observed.thaw()
        settled, settle_ns = child.ask(Verb.SETTLE, timeout_s=timeout_s)
        if isinstance(settled, RunFailure):
            return settled
        observed.freeze()
        failed = _thrown(child.report(), settled.kind) or self._restless()
        if failed is not None:
            return child.end(failed)
        if self._stained or crowded:
            failed = self._reading.changed(page, sets)
        elif self._kept is not None and sets:
            # Of what is copied as a whole, what comes after the copy shows nowhere else. Which set it is nobody knows.
            failed = self._reading.changed(page, [secrets.choice(sets)])
        return settle_ns if failed is None else child.end(failed)

    def _prime(self, limit: float) -> RunFailure | None:
        """One call, and one more if there is time: what is compiled on first use may be compiled again on the next."""
        failed = self._asked(Verb.FILL, 1, 0, limit) if self._fills else None
        for _ in range(PRIMING_CALLS):
            if failed is not None:
                break
            begin = time.monotonic()
            failed = self._asked(Verb.PRIME, 1, 0, limit)
            if time.monotonic() - begin > limit / 4:
                break
        return failed

    def _asked(self, verb: Verb, calls: int, first_set: int, timeout_s: float) -> RunFailure | None:
        """The failure that a command ended in; the process is ended then."""
        answer, _ = self.child.ask(verb, calls=calls, first_set=first_set, timeout_s=timeout_s)
        if isinstance(answer, RunFailure):
            return answer
        failed = _thrown(self.child.report(), answer.kind, loading=verb is Verb.LOAD)
        return None if failed is None else self.child.end(failed)

    def _exported(self, sets: Sequence[int], timeout_s: float) -> RunFailure | None:
        """Have results copied to where this process can read them, where it cannot read them where they are."""
        if not self.child.exporting or not sets:
            return None
        self.child.observed.thaw()
        failed = self._asked(Verb.EXPORT, 0, 0, timeout_s)
        if failed is None:
            self.child.observed.freeze()
        return failed

    def _learned(self) -> RunFailure | None:
        """Learn what the device's rest is, while the candidate is frozen.

        Raises:
            Retryable: others work on it.
        """
        busy_ns = self._rest.learn() if self._rest is not None else None
        if self._rest is None or busy_ns is None:
            return None
        self.child.kill()
        if self._rest.learn() is not None:
            raise Retryable(BUSY)
        return ending.device_worked(busy_ns)

    def _restless(self) -> RunFailure | None:
        """Whether a frozen candidate's device still works for it: freezing stops a processor only.

        Raises:
            Retryable: it works without the candidate, too.
        """
        busy_ns = self._rest.busy_ns() if self._rest is not None else None
        if self._rest is None or busy_ns is None:
            return None
        self.child.kill()
        if self._rest.busy_ns() is not None:
            raise Retryable(BUSY)
        return ending.device_worked(busy_ns)

    def _mutated(self, first_set: int, calls: int) -> RunFailure | None:
        """An input that was written to: a device's memory knows no reader who may not write."""
        where = self._kept.changed(first_set, calls) if self._kept is not None and calls else None
        return None if where is None else failure(Status.MUTATED_INPUT, Layer.INPUTS, fault=f"write to {where}")

    def _survivors(self) -> RunFailure | None:
        """What outlives a call: threads beyond the grant, processes.

        A thread that Python has joined may still be on its way out, so it is given ``EXIT_S`` for that.
        """
        observed, until = self.child.observed, time.monotonic() + EXIT_S
        while (alive := observed.threads_alive()) > self._granted:
            if time.monotonic() > until:
                return ending.left_threads(alive, self._granted)
            observed.thaw()
            time.sleep(EXIT_POLL_S)
            observed.freeze()
        others = observed.others()
        if others:
            return failure(Status.CHEAT, Layer.THREADS, processes=f"{others} alive after a call")
        return None


def _thrown(report: Report, kind: int, *, loading: bool = False) -> RunFailure | None:
    """What an answer's ``kind`` means for the candidate."""
    if kind == Kind.NONE:
        return None
    if kind == Kind.LOAD and not report.refused:
        return ending.not_loaded(report)
    if kind == Kind.REFUSED:
        status = Status.LAUNCH_FAILED if loading else Status.RUNTIME_ERROR
        return failure(status, Layer.SANDBOX, forbidden=report.text)
    return ending.thrown(report, kind)
