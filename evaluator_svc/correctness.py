"""The correctness stage: is the kernel right on every case, each time, and on nothing but its inputs?

Outputs are poisoned with fresh random bytes before every call. Case one runs on all buffer sets at once (same bytes
in, so the same bytes must come out) and again at the end, after the kernel has seen everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.cases import Bytes, Case, elements
from evaluator_svc.judge import Verdict, judge
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.poison import Poison, Stain
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from shared.events import Entry, Status

SETS = 3
KE_DECLINED = 1
UNREPEATABLE = "memory it never wrote, a race, a clock or a random number"
UNWRITTEN_BY_CHANCE = 4
"""More 32-bit elements than this that keep their poison in one run are no coincidence: odds below 1e-9 up to 2**26."""


class Launcher(Protocol):
    """What this stage needs of ``runner.process.Runner``."""

    def write_input(self, set_: int, index: int, data: Any) -> None: ...
    def input_bytes(self, set_: int, index: int) -> memoryview: ...
    def output_bytes(self, set_: int, index: int) -> memoryview: ...
    def slack_intact(self) -> str | None: ...
    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure: ...


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The stage's outcome. ``answers``: the bytes given for case one, which every later process must give, too."""

    verdict: Verdict
    answers: tuple[bytes, ...] = ()


async def check(runner: Launcher, cases: Sequence[Case], poison: Poison, *, call_s: float, ledger: Ledger) -> Checked:
    """Run every case and judge it; stops at the first failure."""
    stage = _Stage(runner, poison, call_s, ledger, Stage.CHECK)
    first = await stage.repeat(cases[0])
    if not first.passed:
        return Checked(verdict=first)
    kept = stage.outputs(cases[0], 0)
    for start in range(1, len(cases), SETS):
        verdict = await stage.batch(cases[start : start + SETS])
        if not verdict.passed:
            return Checked(verdict=verdict)
    last = await stage.again(cases[0], kept)
    evidence = (Entry(name="cases", value=str(len(cases))), *first.evidence)
    return Checked(verdict=last if not last.passed else Verdict(evidence=evidence), answers=kept)


async def check_shape(runner: Launcher, case: Case, poison: Poison, *, call_s: float, ledger: Ledger) -> Verdict:
    """A held-out shape, for a kernel that says it guards its shapes: right, or declined."""
    stage = _Stage(runner, poison, call_s, ledger, Stage.SHAPE)
    stains = stage.load(0, case)
    ran = await stage.launch(1, 0, case)
    if isinstance(ran, RunFailure):
        return _in_case(case, Verdict(status=ran.status, evidence=ran.evidence))
    if ran.return_code == KE_DECLINED:
        return Verdict(evidence=(Entry(name="held_out_shape", value="declined"),))
    return stage.judge_set(case, 0, stains)


class _Stage:
    def __init__(self, runner: Launcher, poison: Poison, call_s: float, ledger: Ledger, purpose: Stage) -> None:
        self._runner, self._poison, self._call_s = runner, poison, call_s
        self._ledger, self._purpose = ledger, purpose

    async def launch(self, calls: int, first_set: int, case: Case) -> Ran | RunFailure:
        """Run and put it on record."""
        ran = await self._runner.run(calls, first_set, self._call_s * calls)
        if isinstance(ran, Ran):
            self._ledger.call(
                Call(
                    stage=self._purpose,
                    process=0,
                    contestant="candidate",
                    case=case.name,
                    calls=calls,
                    controller_ns=ran.elapsed_ns,
                    runner_ns=ran.runner_ns,
                    cpu_ns=ran.cpu_ns,
                    verified=True,
                )
            )
        return ran

    def load(self, set_: int, case: Case) -> list[Stain]:
        for index, data in enumerate(case.inputs):
            self._runner.write_input(set_, index, data)
        return [self._poison.apply(self._runner.output_bytes(set_, i)) for i in range(len(case.references))]

    def outputs(self, case: Case, set_: int) -> tuple[bytes, ...]:
        return tuple(bytes(self._runner.output_bytes(set_, i)) for i in range(len(case.references)))

    async def repeat(self, case: Case) -> Verdict:
        """Case one on every set: complete, repeatable, right."""
        stains = [self.load(set_, case) for set_ in range(SETS)]
        # One call first: a kernel that never returns is found after the time of one.
        failed = await self._run(1, case) or await self._run(SETS - 1, case, first_set=1)
        if failed is not None:
            return failed
        for output in range(len(case.references)):
            # Left alone each time: never written. Left alone now and then: it depends on what was there before.
            left = [self._untouched(case, output, set_, stains[set_]) for set_ in range(SETS)]
            never = np.logical_and.reduce(left)
            chance = UNWRITTEN_BY_CHANCE + (4 * SETS * never.size >> 8 * case.references[output].spec.dtype.itemsize)
            sometimes = np.count_nonzero(np.logical_or.reduce(left) & ~never) > chance
            unwritten = None if sometimes else _unwritten(case, output, never, by_chance=0)
            if unwritten is not None:
                return unwritten
            one = self._runner.output_bytes(0, output)
            for set_ in range(1, SETS):
                other = self._runner.output_bytes(set_, output)
                if _first_difference(one, other) is not None:
                    why = "what the output held before" if sometimes else UNREPEATABLE
                    reason = f"two of {SETS} runs on equal inputs differ: {why} shows"
                    return _nondeterministic(case, output, (one, other), reason)
        return self._judge(case, 0)

    async def batch(self, cases: Sequence[Case]) -> Verdict:
        stains = [self.load(set_, case) for set_, case in enumerate(cases)]
        failed = await self._run(len(cases), cases[0])
        if failed is not None:
            return failed
        for set_, case in enumerate(cases):
            verdict = self.judge_set(case, set_, stains[set_])
            if not verdict.passed:
                return verdict
        return Verdict()

    async def again(self, case: Case, kept: Sequence[bytes]) -> Verdict:
        """Case one once more: what the kernel did in between must not show."""
        self.load(SETS - 1, case)
        failed = await self._run(1, case, first_set=SETS - 1)
        if failed is not None:
            return failed
        after = self.outputs(case, SETS - 1)
        return unequal(case, kept, after, "the result depends on the calls made before") or Verdict()

    def judge_set(self, case: Case, set_: int, stains: Sequence[Stain]) -> Verdict:
        for output, reference in enumerate(case.references):
            if reference.spec.dtype.itemsize < np.dtype(np.float32).itemsize:
                continue  # left to the judge: chance is too common
            same = self._untouched(case, output, set_, stains)
            unwritten = _unwritten(case, output, same, by_chance=UNWRITTEN_BY_CHANCE)
            if unwritten is not None:
                return unwritten
        return self._judge(case, set_)

    async def _run(self, calls: int, case: Case, first_set: int = 0) -> Verdict | None:
        ran = await self.launch(calls, first_set, case)
        if isinstance(ran, RunFailure):
            return _in_case(case, Verdict(status=ran.status, evidence=ran.evidence))
        refused = _return_code(ran.return_code)
        if refused is not None:
            return _in_case(case, refused)
        overrun = self._runner.slack_intact()
        if overrun is not None:
            evidence = (Entry(name="reason", value="wrote outside its outputs"), Entry(name="where", value=overrun))
            return _in_case(case, Verdict(status=Status.RUNTIME_ERROR, evidence=evidence))
        return None

    def _judge(self, case: Case, set_: int) -> Verdict:
        for index, data in enumerate(case.inputs):
            if _first_difference(data, self._runner.input_bytes(set_, index)) is not None:
                evidence = (Entry(name="reason", value=f"input {index} changed"),)
                return _in_case(case, Verdict(status=Status.MUTATED_INPUT, evidence=evidence))
        passed = Verdict()
        for output, reference in enumerate(case.references):
            verdict = judge(reference, self._runner.output_bytes(set_, output))
            if not verdict.passed:
                return _in_case(case, verdict, output if len(case.references) > 1 else None)
            passed = passed if passed.evidence else verdict
        return passed

    def _untouched(self, case: Case, output: int, set_: int, stains: Sequence[Stain]) -> NDArray[np.bool_]:
        """Per element, whether it still holds its poison."""
        size = case.references[output].spec.dtype.itemsize
        return self._poison.untouched(stains[output], self._runner.output_bytes(set_, output), size)


def _unwritten(case: Case, output: int, same: NDArray[np.bool_], *, by_chance: int) -> Verdict | None:
    """The verdict on elements that hold their poison, where more than ``by_chance`` (or all) do."""
    count = int(np.count_nonzero(same))
    if count <= by_chance and count != same.size:
        return None
    if not count:
        return None  # an output without elements
    index = [int(i) for i in np.unravel_index(int(np.argmax(same)), case.references[output].spec.shape or (1,))]
    evidence = (
        Entry(name="reason", value="part of the output was never written"),
        Entry(name="unwritten_elements", value=f"{count} of {same.size}"),
        Entry(name="first_wrong_index", value=str(index)),
    )
    return _in_case(case, Verdict(status=Status.WRONG_RESULT, evidence=evidence), output)


def _return_code(code: int) -> Verdict | None:
    if code == 0:
        return None
    if code == KE_DECLINED:
        evidence = (Entry(name="reason", value="declined the operator's own shapes (KE_DECLINED)"),)
        return Verdict(status=Status.LAUNCH_FAILED, evidence=evidence)
    return Verdict(status=Status.RUNTIME_ERROR, evidence=(Entry(name="return_code", value=str(code)),))


def _in_case(case: Case, verdict: Verdict, output: int | None = None) -> Verdict:
    """The verdict with where it fell. Held-out cases are named by kind only: their values stay secret."""
    where: tuple[Entry, ...] = (Entry(name="case", value=case.name),)
    if output is not None:
        where += (Entry(name="output", value=str(output)),)
    return Verdict(status=verdict.status, evidence=(*verdict.evidence, *where))


def _nondeterministic(case: Case, output: int, runs: tuple[Bytes, Bytes], reason: str) -> Verdict:
    """``runs`` gave unequal bytes for ``output`` on the inputs of ``case``."""
    spec = case.references[output].spec
    byte = _first_difference(*runs) or 0
    at = byte // spec.dtype.itemsize
    values = [str(elements(run, spec.dtype)[at]) for run in runs]
    evidence = (
        Entry(name="reason", value=reason),
        Entry(name="first_differing_index", value=str([int(i) for i in np.unravel_index(at, spec.shape or (1,))])),
        Entry(name="values", value=" and ".join(values)),
    )
    return _in_case(case, Verdict(status=Status.NONDETERMINISTIC, evidence=evidence), output)


def unequal(case: Case, one: Sequence[Bytes], other: Sequence[Bytes], reason: str) -> Verdict | None:
    """NONDETERMINISTIC where two runs on the inputs of ``case`` gave unequal outputs."""
    for output, runs in enumerate(zip(one, other, strict=True)):
        if _first_difference(*runs) is not None:
            return _nondeterministic(case, output, runs, reason)
    return None


def _first_difference(one: Bytes, other: Bytes) -> int | None:
    first: NDArray[np.uint8] = np.frombuffer(one, dtype=np.uint8)
    second: NDArray[np.uint8] = np.frombuffer(other, dtype=np.uint8)
    if np.array_equal(first, second):
        return None
    return int(np.argmax(first != second))
