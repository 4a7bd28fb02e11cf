"""The order in which a hosted candidate is spoken to: load, warm up, seal, then audited calls. Blocking.

Outside of a command the candidate is frozen: it computes nothing between calls, disturbs nobody who is timed meanwhile,
and between an answer and the reading of its results no instruction of it runs.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import on_host
from evaluator_svc.hosted import outputs as contract
from evaluator_svc.hosted import wire
from evaluator_svc.hosted.child import CPU, Candidate, Child
from evaluator_svc.hosted.device_memory import DeviceMemory, Unreadable
from evaluator_svc.hosted.device_rest import Rest
from evaluator_svc.hosted.strided import Strided
from evaluator_svc.hosted.wire import Kind, Verb
from evaluator_svc.hosted.zygote import Zygote
from evaluator_svc.layers import Layer
from evaluator_svc.runner import ending
from evaluator_svc.runner.box import RunnerLimits
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure, failure
from evaluator_svc.runner.process import HIDDEN_EACH_NS, HIDDEN_NS, HIDDEN_SHARE, Ran
from evaluator_svc.runner.protocol import Report
from evaluator_svc.tensors import TensorSpec
from shared.errors import Retryable
from shared.events import Status

PRIMING_CALLS = 2
EXIT_S, EXIT_POLL_S = 1.0, 0.001
"""For threads that were joined to be gone. On a busy machine that takes a while; a thread that still computes gains
nothing by it, because results were read before, and are compared afterwards."""
WAKING_CPU_NS = 150_000
"""Processor time for an empty command to a process that was frozen; all above it is charged to the call."""
EARLY_NS = 20_000_000
"""As ``HIDDEN_NS`` is for a native kernel: a process that was just forked copies pages when it first runs, which took
2 ms on a busy machine. It is charged, so nothing is gained by as much."""
BUSY = "the GPU is busy with others' work"
QUICK_S = 30.0
"""At most, for loading and for warming up where nothing is compiled on first use."""


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
        self._early = self._worked = self._commands = 0
        """Processor time before commands, beyond what waking takes, and all of it; how many commands there were."""
        self._late = 0
        """Time that a device worked on after answers, ns."""
        self._sets, self._outputs, self._returned = sets, tuple(outputs), len(outputs) - mutated
        self._inputs = os.fstat(buffers.inputs_fd)
        self._stained = candidate.stained
        self._kept, self._rest = kept, rest
        self.child = Child(zygote, candidate, buffers, limits, results=sets * len(outputs), kept=kept is not None)
        self._compiles = zygote.profile.processes
        self._fills = zygote.profile.device != CPU and kept is None
        self._base = self.child.report().base
        self._copies = copies
        if self.child.exporting and not copies:  # what the candidate can write to is read once, and then judged
            copies += [np.zeros((buffers.sets, spec.nbytes), dtype=np.uint8) for spec in buffers.outputs]

    def output(self, set_: int, index: int) -> memoryview:
        """What was read last."""
        if self._copies:
            return memoryview(self._copies[index][set_])
        return self._buffers.view(set_, index, output=True)

    def rows(self, index: int) -> NDArray[np.uint8]:
        """The same of all sets."""
        return self._copies[index] if self._copies else self._buffers.rows(index, output=True)

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
        frozen = observed.cpu_ns()
        if self._kept is not None:
            self._kept.arrays.synchronise()  # what this process still does there is nobody else's work
        failed = self._learned()
        if failed is not None:
            return child.end(failed)
        observed.thaw()
        # An empty command first, so that waking up is not timed; it also meets any answer that came too much. What is
        # worked for it counts as the call's, on the wall, too: the new inputs are in place by then.
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
        early = max(0, woken - before - WAKING_CPU_NS)
        answer, elapsed = child.ask(
            Verb.RUN if calls else Verb.SETTLE, calls=calls, first_set=first_set, timeout_s=timeout_s
        )
        if isinstance(answer, RunFailure):
            return answer
        late = 0
        if self._rest is not None:
            # Freezing stops a processor only: what its device has still to do belongs to the call.
            observed.stop()
            waited = self._rest.waited()
            late, self._late = waited.charged, self._late + waited.seen
        observed.freeze()
        spent = observed.cpu_ns() - before
        self._early, self._worked, self._commands = self._early + early, self._worked + spent, self._commands + 1
        if self._early > EARLY_NS + HIDDEN_EACH_NS * self._commands + HIDDEN_SHARE * self._worked:
            return child.end(ending.began_early(self._early))
        failed = self._restless()
        if failed is not None:
            return child.end(failed)
        if self._late > HIDDEN_NS + HIDDEN_EACH_NS * self._commands + HIDDEN_SHARE * self._worked:
            return child.end(ending.went_on(self._late))
        page = child.page()
        sets = sorted({(first_set + i) % self._sets for i in range(calls)})
        failed = _thrown(child.report(), answer.kind) or self._exported(sets, timeout_s) or self._read(page, sets)
        failed = failed or self._mutated(first_set, calls)
        if failed is not None:
            return child.end(failed)
        crowded = observed.threads_alive() > self._granted
        failed = self._survivors()
        if failed is not None:
            return child.end(failed)
        # Ask again: a kernel that answered for itself is still running, and its true answer comes now.
        observed.thaw()
        settled, settle_ns = child.ask(Verb.SETTLE, timeout_s=timeout_s)
        if isinstance(settled, RunFailure):
            return settled
        observed.freeze()
        failed = _thrown(child.report(), settled.kind) or self._restless()
        if failed is not None:
            return child.end(failed)
        if self._stained or crowded:
            failed = self._changed(page, sets)
        elif self._kept is not None and sets:
            # Of what is copied as a whole, what comes after the copy shows nowhere else. Which set it is nobody knows.
            failed = self._changed(page, [secrets.choice(sets)])
        if failed is not None:
            return child.end(failed)
        clock = wire.read_clock(page) if calls and self._kept is None else None  # of no calls it is the last ones'
        failed = ending.impossible_clock(clock, elapsed)
        if failed is not None:
            return child.end(failed)
        return Ran(
            elapsed_ns=elapsed + early + late,
            runner_ns=answer.spent_ns,
            cpu_ns=spent,
            return_code=0,
            device_ns=clock,
            on_device=self.child.on_device,
            settle_ns=settle_ns,
        )

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

    def _read(self, page: bytes, sets: Sequence[int]) -> RunFailure | None:
        """Fill the outputs of ``sets``; or why that cannot be."""
        failed = self._each(page, sets, self._fetch if self._kept is None else self._kept_read)
        if self._kept is not None:
            self._kept.arrays.synchronise()  # the candidate runs on after this: what it holds is copied by then
        return failed

    def _each(
        self, page: bytes, sets: Sequence[int], fetch: Callable[[bytes, int, int, Strided], Strided | RunFailure]
    ) -> RunFailure | None:
        """Have every result of ``sets`` fetched, which gives where it lies; or why not."""
        remark = wire.read_text(page)
        for set_ in sets:
            placed: list[Strided] = []
            for output, spec in enumerate(self._outputs):
                result = wire.unpack(page, set_ * len(self._outputs) + output)
                failed = contract.refused(result, spec, output, remark)
                if failed is not None:
                    return failed
                assert result is not None
                found = fetch(page, set_, output, contract.strided(result, spec))
                if isinstance(found, RunFailure):
                    return found
                placed.append(found)
            # An operator that changes an input in place may return that input, too.
            failed = contract.shared(placed[: self._returned])
            if failed is not None:
                return failed
        return None

    def _kept_place(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        """A result among this process' addresses, where its allocation is mapped."""
        assert self._kept is not None
        told = wire.shared(page, self._sets * len(self._outputs), set_ * len(self._outputs) + output)
        if told is None:
            return contract.contract(Status.CHEAT, output, "lies in memory that cannot be shared", "")
        try:
            return replace(placed, address=self._kept.place(*told, placed.span))
        except Unreadable as why:
            return contract.contract(Status.CHEAT, output, str(why), "")

    def _kept_read(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        assert self._kept is not None
        found = self._kept_place(page, set_, output, placed)
        if isinstance(found, Strided):
            self._kept.read(set_, output, found)
        return found

    def _kept_same(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        assert self._kept is not None
        found = self._kept_place(page, set_, output, placed)
        if isinstance(found, Strided) and not self._kept.same(set_, output, found):
            return _late(output)
        return found

    def _fetch(self, page: bytes, set_: int, output: int, placed: Strided) -> Strided | RunFailure:
        del page
        if self._base <= placed.address < self._base + self._buffers.layout.span:
            return contract.contract(Status.CHEAT, output, "is the memory of an input", "")
        if self.child.exporting:
            self.output(set_, output)[:] = self._buffers.view(set_, output, output=True)
            return placed
        wrong = self.child.memory.where(placed, self._inputs)
        if wrong is not None:
            return contract.contract(Status.CHEAT, output, f"is {wrong}", "")
        try:
            self.child.memory.read(placed, self.output(set_, output))
        except OSError:
            if not self.child.observed.alive:
                raise
            return contract.contract(Status.CHEAT, output, "lies where nobody can read it", "")
        return placed

    def _changed(self, page: bytes, sets: Sequence[int]) -> RunFailure | None:
        """Outputs that were written to after they had been returned: read them once more, and compare."""
        if self._kept is not None:
            return self._each(page, sets, self._kept_same)
        first = {(set_, i): bytes(self.output(set_, i)) for set_ in sets for i in range(len(self._outputs))}
        failed = self._read(page, sets)
        for (set_, index), data in first.items():
            if failed is None and self.output(set_, index) != data:
                return _late(index)
        return failed


def _late(output: int) -> RunFailure:
    return failure(Status.CHEAT, Layer.LATE, reason=f"output {output} changed after the call had returned")


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
