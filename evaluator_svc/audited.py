"""The calls of one candidate's process, each of them audited: known values in, outputs poisoned, the answer verified.

What is verified is a copy made when the call had returned. Before the next input of the same buffers is written, the
outputs must still be that copy: whoever finishes later, or tidies up, shows. All values come at the same addresses, as
a baseline has them; equal values at other addresses are the correctness stage's.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from evaluator_svc.cases import Case
from evaluator_svc.correctness import Launcher
from evaluator_svc.flipping import Flipper
from evaluator_svc.freshness import Values, right
from evaluator_svc.judge import Verdict, judge
from evaluator_svc.layers import Layer, caught
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.poison import Poison, Stain
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from evaluator_svc.samples import CANDIDATE, Clocked, Measured
from shared.contract import Contract
from shared.events import Entry, Status

Settle = Callable[[Values], Awaitable[Case]]
"""Values to their case with answers in fp64."""
STALE_KEPT = 64
"""Values given before that a wrong answer is compared with."""
MISSED_MAX, MISSED_SHARE = 2, 0.25
"""Flips during blocks that may go unseen, and share of them: calls of one block take unequal times, so that now and
then the last one began before a flip all the same."""
CLEAR_CALLS = 1.5
"""A flip counts when this many calls' time was left after it, so that a call began later and read all of it."""
WORD = 4
"""Bytes of an element from which on a kept poison is no chance."""


class Fill(StrEnum):
    """What outputs hold before a call."""

    POISON = "poison"
    ANSWER = "the last answer, written again"


def worked_ns(ran: Ran) -> int:
    """What the candidate worked: the processor's time as the kernel accounts it. On a GPU its device's, as events in
    the candidate's own process tell it: those can be forged, the controller's clock beside them cannot.
    """
    return ran.cpu_ns if ran.device_ns is None else ran.device_ns


class Audited:
    """``measured`` gets what is counted, ``ledger`` every call. After a failure ``measured.verdict`` has it."""

    def __init__(
        self,
        runner: Launcher,
        poison: Poison,
        draw: random.Random,
        *,
        call_s: float,
        measured: Measured,
        ledger: Ledger,
        process: int,
        settle: Settle,
        flipper: Flipper | None,
        contract: Contract,
    ) -> None:
        """``flipper``: None where the candidate does not read the memory that the controller writes."""
        self._runner, self._poison, self._draw, self._call_s = runner, poison, draw, call_s
        self._measured, self._ledger, self._process = measured, ledger, process
        self._settle, self._flipper, self._contract = settle, flipper, contract
        self._held: tuple[bytearray, ...] | None = None
        """The outputs as they were when they were verified."""
        self._stains: tuple[Stain | None, ...] = ()
        self._recent: deque[Values] = deque(maxlen=STALE_KEPT)
        self._values: Values | None = None

    @property
    def values(self) -> Values:
        """What the buffers in use hold."""
        assert self._values is not None, "load first"
        return self._values

    def load(self, values: Values, fill: Fill = Fill.POISON) -> bool:
        """Write ``values``. False: outputs had changed."""
        if not self.unchanged():
            return False
        for index, data in enumerate(values.fresh.case.inputs):
            self._runner.write_input(0, index, data)
        if values.flip is not None:
            index, offset, element = values.element()
            self._runner.input_bytes(0, index)[offset : offset + len(element)] = element
        self._values = values
        self.fill(fill)
        return True

    def flip(self, values: Values) -> bool:
        """Turn the values in use into ``values``, which differ by one flip, in place; outputs are left alone."""
        if not self.unchanged():
            return False
        target, element = self._element(values)
        target[:] = element
        self._values = values
        return True

    def fill(self, fill: Fill) -> None:
        """Give the outputs other bytes, or the same ones."""
        held = self._held
        if fill is Fill.POISON or held is None or self.values.fresh.case.in_place:
            self._stains = tuple(self._stain())
            self._held = None
        elif fill is Fill.ANSWER:
            for data, output in zip(held, self.outputs(), strict=True):
                output[:] = data

    async def call(self, calls: int, stage: Stage) -> Ran | None:
        """``calls`` calls; None after a failure."""
        # Blocks are sized to milliseconds, or to one call: the limit of one call serves both.
        ran = await self._runner.run(calls, 0, self._call_s) if calls else await self._empty()
        if isinstance(ran, RunFailure):
            self.fail(Verdict(status=ran.status, evidence=ran.evidence))
            return None
        if ran.return_code != 0:
            code = Entry(name="return_code", value=str(ran.return_code))
            self.fail(Verdict(status=Status.RUNTIME_ERROR, evidence=(caught(Layer.CRASH), code)))
            return None
        if calls:
            self._held = None
            self._record(calls, stage, ran)
        if stage is Stage.BLOCK:
            self._measured.clocks.append(
                Clocked(calls=calls, controller_ns=ran.elapsed_ns, runner_ns=ran.runner_ns, cpu_ns=ran.cpu_ns)
            )
        return ran

    async def _empty(self) -> Ran | RunFailure:
        ran = await self._runner.run(0, 0, self._call_s)
        if isinstance(ran, Ran):
            self._measured.empty_ns.append(ran.elapsed_ns)
            self._measured.empty_own_ns.append(worked_ns(ran))
        return ran

    async def block(self, calls: int, per_call_ns: float, to: Values | None) -> Ran | None:
        """A block of ``calls`` calls, verified. With ``to``, which differ from the values in use by a flip, the change
        is made while it runs, at a moment drawn so that two calls or more are still to come.
        """
        if to is None or self._flipper is None or calls < 4:
            ran = await self.call(calls, Stage.BLOCK)
            return ran if ran is not None and await self.verify() else None
        left = self._draw.uniform(2.0, max(2.0, calls / 2))
        begun = time.monotonic_ns()
        armed = self._flipper.arm((calls - left) * per_call_ns, *self._element(to))
        try:
            ran = await self.call(calls, Stage.BLOCK)
        finally:
            at = armed.disarm()
        if ran is None:
            return None
        if at is None:
            return ran if await self.verify() else None
        self._values = to
        # It may have been off the processor for all of that time in its last call.
        waited = max(0, ran.elapsed_ns - ran.cpu_ns)
        clear = at < begun + ran.elapsed_ns * (1.0 - CLEAR_CALLS / calls) - waited
        return ran if await (self._follows() if clear else self._once_more()) else None

    async def verify(self) -> bool:
        """The outputs of the last call against the values in use; keeps them."""
        overrun = self._runner.slack_intact()
        if overrun is not None:
            evidence = (
                Entry(name="reason", value="wrote outside its outputs while timed"),
                Entry(name="where", value=overrun),
            )
            return self.fail(Verdict(status=Status.RUNTIME_ERROR, evidence=(caught(Layer.CONTRACT), *evidence)))
        copies = self._copies()
        wrong = await self._wrong(copies)
        return self._keep(copies) if wrong is None else self.fail(wrong)

    def outputs(self) -> Sequence[memoryview]:
        """What the outputs hold."""
        return [self._runner.output_bytes(0, i) for i in range(len(self.values.fresh.case.references))]

    def fail(self, verdict: Verdict) -> bool:
        """Keep ``verdict``; False."""
        self._measured.verdict = verdict
        return False

    async def _follows(self) -> bool:
        """After a flip in the middle of a block: whether the last call of the block has followed it."""
        copies = self._copies()
        if await self._wrong(copies) is None:
            self._measured.followed += 1
            return self._keep(copies)
        self._measured.missed += 1
        missed, followed = self._measured.missed, self._measured.followed
        if missed <= MISSED_MAX or missed < MISSED_SHARE * (missed + followed):
            return await self._once_more()
        evidence = (
            Entry(name="reason", value="an element of the input changed during a block, and the answer did not"),
            Entry(name="changes_followed", value=str(followed)),
            Entry(name="changes_missed", value=str(missed)),
        )
        return self.fail(Verdict(status=Status.CHEAT, evidence=(caught(Layer.FRESH), *evidence)))

    def _keep(self, copies: tuple[bytearray, ...]) -> bool:
        """Remember what was verified; True."""
        self._measured.verified += 1
        self._ledger.calls[-1] = replace(self._ledger.calls[-1], verified=True)
        self._held = copies
        self._recent.append(self.values)
        return True

    async def _once_more(self) -> bool:
        """One call on what the inputs hold now, verified."""
        return await self.call(1, Stage.CHECK) is not None and await self.verify()

    def _element(self, values: Values) -> tuple[memoryview, bytes]:
        """Where the values in use and ``values`` differ, and what is to stand there."""
        if values.flip is not None:
            index, offset, element = values.element()
        else:
            index, offset, element = self.values.element()
            element = values.fresh.case.inputs[index][offset : offset + len(element)].tobytes()
        return self._runner.input_bytes(0, index)[offset : offset + len(element)], element

    def _copies(self) -> tuple[bytearray, ...]:
        return tuple(bytearray(data) for data in self.outputs())

    async def _wrong(self, outputs: Sequence[bytearray]) -> Verdict | None:
        """Why ``outputs`` are not the answer to the values in use; None when they are."""
        if right(self.values, outputs):
            return None
        # Borrowed limits accuse nobody: the judge has the answer in fp64, and the last word.
        case = await self._settle(self.values)
        for reference, data in zip(case.references, outputs, strict=True):
            verdict = judge(reference, data, bitwise=self._contract.bitwise)
            if not verdict.passed:
                return self._explained(verdict, outputs)
        return None

    def _explained(self, verdict: Verdict, outputs: Sequence[bytearray]) -> Verdict:
        """``verdict`` with what the wrong answer is: nothing, an old one, or neither."""
        said = (*verdict.evidence, Entry(name="case", value="a timed call"))
        if self._unwritten(outputs):
            said = (caught(Layer.POISON), Entry(name="reason", value="part of the output was not written"), *said[1:])
        elif any(right(values, outputs) for values in self._recent if values.name != self.values.name):
            said = (caught(Layer.FRESH), Entry(name="reason", value="the answer to values given before"), *said[1:])
            return Verdict(status=Status.CHEAT, evidence=said)
        return Verdict(status=verdict.status, evidence=said)

    def _unwritten(self, outputs: Sequence[bytearray]) -> bool:
        for reference, stain, data in zip(self.values.fresh.case.references, self._stains, outputs, strict=True):
            size = reference.spec.dtype.itemsize
            if stain is not None and size >= WORD:
                parts = self._poison.untouched(stain, memoryview(data), size)
                if sum(int(np.count_nonzero(part)) for part in parts) > WORD:
                    return True
        return False

    def _stain(self) -> Iterator[Stain | None]:
        """Poison for outputs; those that an input becomes begin as a copy of it."""
        case = self.values.fresh.case
        plain = len(case.references) - len(case.in_place)
        for index, output in enumerate(self.outputs()):
            if index < plain:
                yield self._poison.apply(output)
            else:
                output[:] = self._runner.input_bytes(0, case.in_place[index - plain])
                yield None

    def unchanged(self) -> bool:
        """Whether the outputs are still what was verified; ``load`` asks this first."""
        for index, data in enumerate(self._held or ()):
            now = np.frombuffer(self._runner.output_bytes(0, index), dtype=np.uint8)
            if not np.array_equal(now, np.frombuffer(data, dtype=np.uint8)):
                evidence = (
                    Entry(name="reason", value="an output changed after the call had returned and was verified"),
                    Entry(name="output", value=str(index)),
                )
                return self.fail(Verdict(status=Status.CHEAT, evidence=(caught(Layer.LATE), *evidence)))
        return True

    def _record(self, calls: int, stage: Stage, ran: Ran) -> None:
        self._ledger.call(
            Call(
                stage=stage,
                process=self._process,
                contestant=CANDIDATE,
                case=self.values.name,
                calls=calls,
                controller_ns=ran.elapsed_ns,
                runner_ns=ran.runner_ns,
                cpu_ns=ran.cpu_ns,
                device_ns=ran.device_ns,
                first_use=self.values.first_use,
            )
        )
        self._measured.first_uses += self.values.first_use
        self._values = replace(self.values, first_use=False)
