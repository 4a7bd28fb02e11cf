"""The blocks of one candidate's process, each of them audited: no call of a block can be skipped, and none remembered.

A block of N calls runs over N sets of input and output buffers. Before it, every set gets values of its own, every
output is poisoned, and the caches are emptied of both. After it, every output of every set is verified: who left a call
out left the poison, and who gave an answer by the address, by the shape or by a part of the values gave another set's.
Which set is the first is drawn for each block.

What is verified is a copy made when the block had returned. Before the next inputs are written, the outputs must still
be that copy: whoever finishes later, or tidies up, shows.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import assign, beside, equal
from evaluator_svc.cases import Case
from evaluator_svc.correctness import TELLING, Launcher
from evaluator_svc.freshness import Values, right
from evaluator_svc.judge import Verdict, judge, near
from evaluator_svc.layers import Layer, caught
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.placing import case_beside
from evaluator_svc.poison import Poison, Stain
from evaluator_svc.runner.buffers import turns
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from evaluator_svc.samples import CANDIDATE, Clocked, Measured
from shared.contract import Contract
from shared.events import Entry, Status

Settle = Callable[[Values], Awaitable[Case]]
"""Values to their case with answers in fp64."""
STALE_KEPT = 256
"""Values given before that a wrong answer is compared with."""
BLOCK_LIMIT = 2
"""A block may take this many times the limit of a call: there are many calls only where they are short."""
TOGETHER_BYTES = 1 << 28
"""Of outputs that are compared with one answer at a time."""
WORD = 4
"""Bytes of an element from which on a kept poison is no chance."""


class Timed(Launcher, Protocol):
    """What timing needs of ``runner.process.Runner`` besides."""

    cools_outputs: bool
    pipelined: bool
    """Calls of a block are in flight together."""
    first_calls_dearer: bool
    """A call of a short block costs more than one of a long block, whatever it is given; it does where calls are
    pipelined.
    """
    owns_results: bool
    """Results are copies that no candidate can reach, and are left alone until the next block on their set."""

    async def waited_ns(self) -> int:
        """What an operation of the controller's on the kernels' device waits for, whoever had it; 0 without one."""
        ...

    @property
    def sets(self) -> int: ...
    def write_sets(self, sets: Sequence[int], index: int, data: NDArray[np.uint8]) -> None: ...
    def output_rows(self, index: int) -> Any: ...
    def cool(self, first_set: int, calls: int) -> None: ...


def worked_ns(ran: Ran) -> int:
    """What the candidate worked: the processor's time as the kernel accounts it. On a GPU that says nothing, and its
    device's could be told by the candidate's own process only: there it is the controller's clock.
    """
    return ran.elapsed_ns if ran.on_device else ran.cpu_ns


class Audited:
    """``measured`` gets what is counted, ``ledger`` every block. After a failure ``measured.verdict`` has it."""

    def __init__(
        self,
        runner: Timed,
        poison: Poison,
        draw: random.Random,
        *,
        call_s: float,
        measured: Measured,
        ledger: Ledger,
        process: int,
        settle: Settle,
        contract: Contract,
    ) -> None:
        self._runner, self._poison, self._draw, self._call_s = runner, poison, draw, call_s
        self._measured, self._ledger, self._process = measured, ledger, process
        self._settle, self._contract = settle, contract
        self._values: list[Values] = []
        self._sets: list[int] = []
        """Of each call of the block, in order: what it is given, and where."""
        self._stains: list[list[Stain] | None] = []
        """By output and call; None for an output that an input becomes."""
        self._copies: list[NDArray[np.uint8]] = []
        """By output: calls x bytes, and room for more."""
        self._held = False
        """Whether the copies are what was verified last."""
        self._recent: deque[Values] = deque(maxlen=STALE_KEPT)

    def load(self, values: Sequence[Values]) -> bool:
        """Give the next block ``values``, one for each call. False: outputs had changed."""
        if not self.unchanged():
            return False
        runner, count = self._runner, len(values)
        assert 0 < count <= runner.sets, "a set is used once in a block"
        first = self._draw.randrange(runner.sets)
        self._values, self._held = list(values), False
        self._sets = [(first + i) % runner.sets for i in range(count)]
        for places in _by_case(values):
            for index, data in enumerate(values[places[0]].fresh.case.inputs):
                runner.write_sets([self._sets[place] for place in places], index, data)
        for set_, given in zip(self._sets, values, strict=True):
            if given.flip is not None:
                index, offset, element = given.element()
                assign(runner.input_bytes(set_, index)[offset : offset + len(element)], element)
        self._stain()
        runner.cool(first, count)
        return True

    async def call(self, stage: Stage) -> Ran | None:
        """One call on each of the values that were loaded; None after a failure."""
        count = len(self._values)
        ran = self._came_back(await self._runner.run(count, self._sets[0], self._call_s * min(count, BLOCK_LIMIT)))
        if ran is None:
            return None
        self._record(stage, ran)
        if ran.settle_ns is not None:
            self._measured.settle_ns.append(ran.settle_ns)
        if stage is Stage.BLOCK:
            self._measured.clocks.append(
                Clocked(calls=count, controller_ns=ran.elapsed_ns, runner_ns=ran.runner_ns, cpu_ns=ran.cpu_ns)
            )
        return ran

    async def empty(self) -> bool:
        """A command to make no call; False after a failure."""
        ran = self._came_back(await self._runner.run(0, 0, self._call_s))
        if ran is not None:
            self._measured.empty_ns.append(ran.elapsed_ns)
            self._measured.empty_own_ns.append(worked_ns(ran))
        return ran is not None

    async def verify(self) -> bool:
        """All outputs of the block against what it was given; keeps them."""
        overrun = self._runner.slack_intact()
        if overrun is not None:
            evidence = (
                Entry(name="reason", value="wrote outside its outputs while timed"),
                Entry(name="where", value=overrun),
            )
            return self.fail(Verdict(status=Status.RUNTIME_ERROR, evidence=(caught(Layer.CONTRACT), *evidence)))
        self._copy()
        wrong = await self._wrong()
        if wrong is not None:
            return self.fail(wrong)
        self._held = True
        self._measured.verified += len(self._values)
        self._ledger.calls[-1] = replace(self._ledger.calls[-1], verified=True)
        self._recent.extend(self._values)
        return True

    def unchanged(self) -> bool:
        """Whether the outputs are still what was verified; ``load`` asks this first. Where they are the controller's
        own, the session looks at what they were copied from.
        """
        for index, rows in self._rows() if self._held and not self._runner.owns_results else ():
            for place, row in enumerate(rows):
                if not equal(row, self._copies[index][place]):
                    evidence = (
                        Entry(name="reason", value="an output changed after the call had returned and was verified"),
                        Entry(name="output", value=str(index)),
                    )
                    return self.fail(Verdict(status=Status.CHEAT, evidence=(caught(Layer.LATE), *evidence)))
        return True

    def outputs(self, place: int = 0) -> list[NDArray[np.uint8]]:
        """The outputs of one call of the block, as they were when it had returned; ``verify`` reads them, too."""
        self._copy()
        return self._of(place)

    def fail(self, verdict: Verdict) -> bool:
        """Keep ``verdict``; False."""
        self._measured.verdict = verdict
        return False

    def _came_back(self, ran: Ran | RunFailure) -> Ran | None:
        if isinstance(ran, RunFailure):
            self.fail(Verdict(status=ran.status, evidence=ran.evidence))
            return None
        if ran.return_code != 0:
            code = Entry(name="return_code", value=str(ran.return_code))
            self.fail(Verdict(status=Status.RUNTIME_ERROR, evidence=(caught(Layer.CRASH), code)))
            return None
        return ran

    def _rows(self) -> Iterable[tuple[int, list[NDArray[np.uint8]]]]:
        """Per output its bytes in the sets of the block, where the runner has them."""
        for index in range(len(self._values[0].fresh.case.references)):
            rows = self._runner.output_rows(index)
            yield index, [rows[set_] for set_ in self._sets]

    def _copy(self) -> None:
        if self._runner.owns_results:
            return
        count = len(self._values)
        for index in range(len(self._values[0].fresh.case.references)):
            rows = self._runner.output_rows(index)
            if len(self._copies) <= index:
                self._copies.append(rows.copy())
            place = 0
            for begin, end in turns(self._sets[0], count, self._runner.sets):
                self._copies[index][place : place + end - begin] = rows[begin:end]
                place += end - begin

    def _taken(self, index: int, places: Sequence[int]) -> tuple[NDArray[np.uint8], list[int]]:
        """An output as it was taken, and which rows of that are those of the calls."""
        if self._runner.owns_results:
            return self._runner.output_rows(index), [self._sets[place] for place in places]
        return self._copies[index], list(places)

    def _of(self, place: int) -> list[NDArray[np.uint8]]:
        taken = [self._taken(index, [place]) for index in range(len(self._values[0].fresh.case.references))]
        return [rows[row] for rows, (row,) in taken]

    async def _wrong(self) -> Verdict | None:
        """Why a call's outputs are not the answer to what it was given; None when all are."""
        for place in self._doubtful():
            # Borrowed limits accuse nobody: the judge has the answer in fp64, and the last word.
            case = case_beside(await self._settle(self._values[place]), self._runner.placed)
            for reference, data in zip(case.references, self._of(place), strict=True):
                verdict = judge(reference, data, bitwise=self._contract.bitwise)
                if not verdict.passed:
                    return self._explained(verdict, place)
        return None

    def _doubtful(self) -> list[int]:
        """The calls whose outputs are not within the borrowed limits, and those on values whose answer in fp64 is here
        already: the borrowed limits are wider, and a kernel that knows that it is timed could live on the difference.
        """
        found = [place for place, given in enumerate(self._values) if given.settled]
        found += [
            place
            for place, given in enumerate(self._values)
            if given.flip is not None and not right(given, self._of(place))
        ]
        for places in _by_case(self._values):
            plain = [place for place in places if self._values[place].flip is None and not self._values[place].settled]
            for index, reference in enumerate(self._values[places[0]].fresh.case.references):
                many = max(1, TOGETHER_BYTES // max(1, reference.spec.nbytes))
                for start in range(0, len(plain), many):
                    some = plain[start : start + many]
                    rows, taken = self._taken(index, some)
                    together = rows[beside(np.asarray(taken), rows)] if len(taken) > 1 else rows[taken[0]][None]
                    found += [some[i] for i in np.flatnonzero(~near(reference, together))]
        return sorted(set(found))

    def _explained(self, verdict: Verdict, place: int) -> Verdict:
        """``verdict`` with what the wrong answer is: nothing, an old one, or neither."""
        which = f"call {place + 1} of a block of {len(self._values)}"
        public = self._values[place].fresh.case.public
        # Of held-out values no search learns anything.
        told = verdict.evidence if public else tuple(one for one in verdict.evidence if one.name in TELLING)
        said = (*told, Entry(name="case", value="a timed call"), Entry(name="call", value=which))
        given, outputs = self._values[place], self._of(place)
        if self._unwritten(place):
            said = (caught(Layer.POISON), Entry(name="reason", value="part of the output was not written"), *said[1:])
        elif any(right(values, outputs) for values in self._others(given)):
            said = (caught(Layer.FRESH), Entry(name="reason", value="the answer to other values"), *said[1:])
            return Verdict(status=Status.CHEAT, evidence=said)
        return Verdict(status=verdict.status, evidence=said)

    def _others(self, given: Values) -> list[Values]:
        """What the process has had besides."""
        others = {values.name: values for values in (*self._recent, *self._values) if values.name != given.name}
        if given.flip is not None:
            before = replace(given, flip=None)
            others[before.name] = before
        return list(others.values())

    def _unwritten(self, place: int) -> bool:
        for index, (reference, data) in enumerate(
            zip(self._values[place].fresh.case.references, self._of(place), strict=True)
        ):
            size, stains = reference.spec.dtype.itemsize, self._stains[index]
            if stains is not None and size >= WORD:
                parts = self._poison.untouched(stains[place], memoryview(data), size)  # type: ignore[arg-type]
                if sum(int(np.count_nonzero(part)) for part in parts) > WORD:
                    return True
        return False

    def _stain(self) -> None:
        """Poison all outputs of the block; those that an input becomes begin as a copy of it."""
        case, count = self._values[0].fresh.case, len(self._values)
        if not self._runner.poisons:
            self._stains = [None] * len(case.references)
            return
        plain = len(case.references) - len(case.in_place)
        self._stains = []
        for index in range(len(case.references)):
            rows = self._runner.output_rows(index)
            if index < plain:
                parts = turns(self._sets[0], count, self._runner.sets)
                self._stains.append([s for begin, end in parts for s in self._poison.apply_rows(rows[begin:end])])
            else:
                self._stains.append(None)
                for set_ in self._sets:
                    rows[set_] = np.frombuffer(
                        self._runner.input_bytes(set_, case.in_place[index - plain]), dtype=np.uint8
                    )

    def _record(self, stage: Stage, ran: Ran) -> None:
        count = len(self._values)
        flips, new = sum(v.flip is not None for v in self._values), sum(v.first_use for v in self._values)
        case = self._values[0].name if count == 1 else f"{count} sets of values, {flips} with an element flipped"
        unlike = [v.name for v in self._values if v.settled and count > 1]
        case += f", and in their midst {', '.join(unlike)}" if unlike else ""
        self._ledger.call(
            Call(
                stage=stage,
                process=self._process,
                contestant=CANDIDATE,
                case=case,
                calls=count,
                controller_ns=ran.elapsed_ns,
                runner_ns=ran.runner_ns,
                cpu_ns=ran.cpu_ns,
                device_ns=ran.device_ns,
                first_use=new == count,
            )
        )
        self._measured.first_uses += new


def _by_case(values: Sequence[Values]) -> list[list[int]]:
    """The places of each case among ``values``."""
    places: dict[int, list[int]] = {}
    for place, given in enumerate(values):
        places.setdefault(id(given.fresh), []).append(place)
    return list(places.values())
