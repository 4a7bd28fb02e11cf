"""The correctness stage: is the kernel right on every case, each time, and on nothing but its inputs?

Outputs are poisoned with fresh random bytes before every call. Case one runs on all buffer sets at once (new addresses,
same bytes in, so the same bytes must come out), the others in turn (same addresses, new values), then what the operator
shows about itself (``properties.py``), and case one again at the end, after the kernel has seen everything else, NaN
included: what a call leaves behind in a workspace must not show in the next.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evaluator_svc.arrays import Bytes, assign, on_device
from evaluator_svc.cases import Case
from evaluator_svc.catalogue import ONE_ELEMENT
from evaluator_svc.judge import NOT_PROPAGATED, Verdict, judge
from evaluator_svc.layers import Layer, caught
from evaluator_svc.ledger import Call, Ledger, Stage
from evaluator_svc.placing import case_beside
from evaluator_svc.poison import Poison, Stain
from evaluator_svc.properties import Relation, broken
from evaluator_svc.repeatability import first_difference, nondeterministic, unequal
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Ran
from evaluator_svc.written import BY_CHANCE, chance_over, counted, over_runs, unwritten
from shared.contract import Contract
from shared.events import Entry, Status
from shared.events.evaluation import CAUGHT_BY

__all__ = ["SETS", "Checked", "Launcher", "check", "check_shape", "unequal"]

SETS = 3
KE_DECLINED, KE_LAUNCH_FAILED = 1, 100
UNREPEATABLE = "memory it never wrote, a race, a clock or a random number"
WORD = 4
"""Bytes of an element from which on a kept poison is no chance."""
CONTRACT = Contract()


class Launcher(Protocol):
    """What this stage needs of ``runner.process.Runner``. Buffers are bytes in memory or on a device."""

    poisons: bool

    def placed(self, data: Any) -> Any: ...
    def write_input(self, set_: int, index: int, data: Any) -> None: ...
    def input_bytes(self, set_: int, index: int) -> Any: ...
    def output_bytes(self, set_: int, index: int) -> Any: ...
    def slack_intact(self) -> str | None: ...
    async def run(self, calls: int, first_set: int = 0, timeout_s: float = 10.0) -> Ran | RunFailure: ...


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The stage's outcome. ``answers``: the bytes given for case one, which every later process must give, too (on a
    device, where outputs lie there); empty for an operator that is declared nondeterministic.
    """

    verdict: Verdict
    answers: tuple[Bytes, ...] = ()
    saw_held_out: bool = False
    """It was given held-out values: what it printed is nobody's business."""
    audit: str = ""
    """What the candidate's side said of one audited call: advice. Empty for a native kernel."""


async def check(
    runner: Launcher,
    cases: Sequence[Case],
    poison: Poison,
    *,
    call_s: float,
    ledger: Ledger,
    contract: Contract = CONTRACT,
    relations: Sequence[Relation] = (),
) -> Checked:
    """Run every case and judge it, then hold the kernel to ``relations``; stops at the first failure.

    ``cases`` begin with one of the operator's own. Special values come last, whatever their place.
    """
    stage = _Stage(runner, poison, call_s, ledger, Stage.CHECK, contract)
    first = await stage.repeat(cases[0])
    if not first.passed:
        return Checked(verdict=first)
    kept = () if contract.nondeterministic else stage.outputs(cases[0], 0)
    rest = sorted(cases[1:], key=lambda case: (case.special, case.name != ONE_ELEMENT))
    for start in range(0, len(rest), SETS):
        verdict = await stage.batch(rest[start : start + SETS], kept)
        if not verdict.passed:
            return Checked(verdict=verdict, saw_held_out=not all(case.public for case in rest[: start + SETS]))
    own = [case for case in cases if case.public]
    for relation in relations:
        verdict = await stage.relation(own[secrets.randbelow(len(own))], relation)
        if not verdict.passed:
            return Checked(verdict=verdict, saw_held_out=True)
    last = await stage.again(cases[0], kept)
    if not last.passed:
        return Checked(verdict=last, saw_held_out=True)
    evidence = (Entry(name="cases", value=str(len(cases))), *first.evidence, *stage.said)
    return Checked(verdict=Verdict(evidence=evidence), answers=kept, saw_held_out=True)


async def check_shape(
    runner: Launcher, case: Case, poison: Poison, *, call_s: float, ledger: Ledger, contract: Contract = CONTRACT
) -> Verdict:
    """A held-out shape, for a kernel that says it guards its shapes: right, or declined."""
    stage = _Stage(runner, poison, call_s, ledger, Stage.SHAPE, contract)
    case = stage.beside(case)
    stains = stage.load(0, case)
    ran = await stage.launch(1, 0, case)
    if isinstance(ran, RunFailure):
        return _in_case(case, Verdict(status=ran.status, evidence=ran.evidence))
    if ran.return_code == KE_DECLINED:
        return Verdict(evidence=(Entry(name="held_out_shape", value="declined"),))
    return stage.judge_set(case, 0, stains)


class _Stage:
    def __init__(
        self, runner: Launcher, poison: Poison, call_s: float, ledger: Ledger, purpose: Stage, contract: Contract
    ) -> None:
        self._runner, self._poison, self._call_s = runner, poison, call_s
        self._ledger, self._purpose, self._contract = ledger, purpose, contract
        self.said: tuple[Entry, ...] = ()
        """Findings that are no failures."""

    def beside(self, case: Case) -> Case:
        """``case`` where the outputs are; made when it is needed, because many would fill a device."""
        return case_beside(case, self._runner.placed)

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
                    device_ns=ran.device_ns,
                    verified=True,
                )
            )
        return ran

    def load(self, set_: int, case: Case) -> list[Stain | None]:
        """Fill a set. An output that the operator changes in place begins as its input; the others are poisoned."""
        for index, data in enumerate(case.inputs):
            self._runner.write_input(set_, index, data)
        return self._stain(set_, case)

    def outputs(self, case: Case, set_: int) -> tuple[Bytes, ...]:
        """Copies."""
        found = (self._runner.output_bytes(set_, i) for i in range(len(case.references)))
        return tuple(one.copy() if on_device(one) else bytes(one) for one in found)

    async def repeat(self, case: Case) -> Verdict:
        """Case one on every set: complete, repeatable, right."""
        case = self.beside(case)
        stains = [self.load(set_, case) for set_ in range(SETS)]
        # One call first: a kernel that never returns is found after the time of one.
        failed = await self._run(1, case) or await self._run(SETS - 1, case, first_set=1)
        if failed is not None:
            return failed
        for output in range(len(case.references)):
            found = self._complete_and_repeated(case, output, [stain[output] for stain in stains])
            if found is not None:
                return found
        if self._contract.nondeterministic:
            # The spread is bounded by the same limits as the result.
            verdicts = [self._judge(case, set_) for set_ in range(SETS)]
            return next((verdict for verdict in verdicts if not verdict.passed), verdicts[0])
        self._ledger.check(Layer.DETERMINISM.value, case.name, f"{SETS} runs on equal inputs gave equal bytes")
        return self._judge(case, 0)

    async def batch(self, cases: Sequence[Case], before: Sequence[Bytes]) -> Verdict:
        """``before``: the answers to the case that one element was changed of."""
        cases = [self.beside(case) for case in cases]
        stains = [self.load(set_, case) for set_, case in enumerate(cases)]
        failed = await self._run(len(cases), cases[0])
        if failed is not None:
            return failed
        for set_, case in enumerate(cases):
            verdict = self.judge_set(case, set_, stains[set_])
            if verdict.status is Status.WRONG_RESULT and case.name == ONE_ELEMENT and self._gave(set_, before):
                return _in_case(case, _stale())
            if not verdict.passed:
                return verdict
        return Verdict()

    async def relation(self, case: Case, relation: Relation) -> Verdict:
        """Related calls, whose outputs are compared with each other: no answer exists that could be stolen."""
        case = self.beside(case)
        seed = secrets.randbits(32)
        variants = relation.variants(case, seed)
        for set_, inputs in enumerate(variants):
            for index, data in enumerate(inputs):
                self._runner.write_input(set_, index, data)
            self._stain(set_, case)
        failed = await self._run(len(variants), case)
        if failed is not None:
            return failed
        count = len(case.references)
        given = [[self._output(set_, i) for i in range(count)] for set_ in range(len(variants))]
        reason = broken(relation, case, given, seed)
        self._ledger.check(Layer.JUDGE.value, f"property: {relation.name}", reason or "holds")
        if reason is None:
            return Verdict()
        said = Entry(name="reason", value=f"breaks a property of the operator: {relation.name}")
        return Verdict(status=Status.WRONG_RESULT, evidence=(caught(Layer.JUDGE), said))

    async def again(self, case: Case, kept: Sequence[Bytes]) -> Verdict:
        """Case one once more: what the kernel did in between must not show."""
        case = self.beside(case)
        self.load(SETS - 1, case)
        failed = await self._run(1, case, first_set=SETS - 1)
        if failed is not None:
            return failed
        if self._contract.nondeterministic:
            return self._judge(case, SETS - 1)
        after = [self._runner.output_bytes(SETS - 1, i) for i in range(len(case.references))]
        found = unequal(case, kept, after, "the result depends on the calls made before")
        self._ledger.check(Layer.DETERMINISM.value, f"{case.name}, after all others", "unequal" if found else "equal")
        return Verdict() if found is None else _in_case(case, found)

    def judge_set(self, case: Case, set_: int, stains: Sequence[Stain | None]) -> Verdict:
        for output, reference in enumerate(case.references):
            stain = stains[output]
            if stain is None or reference.spec.dtype.itemsize < WORD:
                continue  # left to the judge: chance is too common
            kept = counted(self._poison.untouched(stain, self._output(set_, output), reference.spec.dtype.itemsize))
            missing = unwritten(reference.spec, kept, by_chance=BY_CHANCE)
            if missing is not None:
                return _in_case(case, missing, output)
        return self._judge(case, set_)

    def _gave(self, set_: int, answers: Sequence[Bytes]) -> bool:
        """Whether the outputs of a set are these."""
        pairs = ((answer, self._output(set_, index)) for index, answer in enumerate(answers))
        return bool(answers) and all(first_difference(*pair) is None for pair in pairs)

    def _stain(self, set_: int, case: Case) -> list[Stain | None]:
        if not self._runner.poisons:
            return [None] * len(case.references)
        stains: list[Stain | None] = []
        plain = len(case.references) - len(case.in_place)
        for output in range(len(case.references)):
            if output < plain:
                stains.append(self._poison.apply(self._output(set_, output)))
            else:
                position = case.in_place[output - plain]
                assign(self._output(set_, output), self._runner.input_bytes(set_, position))
                stains.append(None)
        return stains

    def _output(self, set_: int, output: int) -> Any:
        return self._runner.output_bytes(set_, output)

    def _complete_and_repeated(self, case: Case, output: int, stains: Sequence[Stain | None]) -> Verdict | None:
        spec, sometimes = case.references[output].spec, False
        marked = [stain for stain in stains if stain is not None]
        if marked:
            # Left alone each time: never written. Left alone now and then: it depends on what was there before.
            kept, some = over_runs([
                self._poison.untouched(stain, self._output(set_, output), spec.dtype.itemsize)
                for set_, stain in enumerate(marked)
            ])  # fmt: skip
            sometimes = some > chance_over(SETS, spec)
            missing = None if sometimes else unwritten(spec, kept, by_chance=0)
            if missing is not None:
                return _in_case(case, missing, output)
        if self._contract.nondeterministic and not sometimes:
            return None
        for set_ in range(1, SETS):
            runs = (self._output(0, output), self._output(set_, output))
            if first_difference(*runs) is not None:
                why = "what the output held before" if sometimes else UNREPEATABLE
                reason = f"two of {SETS} runs on equal inputs differ: {why} shows"
                return _in_case(case, nondeterministic(case, output, runs, reason), output)
        return None

    async def _run(self, calls: int, case: Case, first_set: int = 0) -> Verdict | None:
        ran = await self.launch(calls, first_set, case)
        if isinstance(ran, RunFailure):
            return _in_case(case, Verdict(status=ran.status, evidence=ran.evidence), whole=True)
        refused = _return_code(ran.return_code)
        if refused is not None:
            return _in_case(case, refused, whole=True)
        overrun = self._runner.slack_intact()
        if overrun is not None:
            evidence = (
                caught(Layer.CONTRACT),
                Entry(name="reason", value="wrote outside its outputs"),
                Entry(name="where", value=overrun),
            )
            return _in_case(case, Verdict(status=Status.RUNTIME_ERROR, evidence=evidence), whole=True)
        return None

    def _judge(self, case: Case, set_: int) -> Verdict:
        for index, data in enumerate(case.inputs):
            if first_difference(data, self._runner.input_bytes(set_, index)) is not None:
                evidence = (caught(Layer.INPUTS), Entry(name="reason", value=f"input {index} changed"))
                return _in_case(case, Verdict(status=Status.MUTATED_INPUT, evidence=evidence))
        passed = Verdict()
        for output, reference in enumerate(case.references):
            verdict = judge(reference, self._output(set_, output), bitwise=self._contract.bitwise)
            self._ledger.check(Layer.JUDGE.value, f"{case.name}, output {output}", _outcome(verdict))
            if not verdict.passed:
                return _in_case(case, verdict, output if len(case.references) > 1 else None)
            passed = passed if passed.evidence else verdict
            self.said += tuple(entry for entry in verdict.evidence if entry.name == NOT_PROPAGATED)
        return passed


def _outcome(verdict: Verdict) -> str:
    """The numbers of a verdict in a line, for the ledger."""
    return " ".join((verdict.status.value, *(f"{e.name}={e.value}" for e in verdict.evidence if e.name != CAUGHT_BY)))


def _stale() -> Verdict:
    reason = Entry(name="reason", value="the answer to the values before one element of them was changed")
    return Verdict(status=Status.CHEAT, evidence=(caught(Layer.FRESH), reason))


def _return_code(code: int) -> Verdict | None:
    if code == 0:
        return None
    if code == KE_DECLINED:
        reason = Entry(name="reason", value="declined the operator's own shapes (KE_DECLINED)")
        return Verdict(status=Status.LAUNCH_FAILED, evidence=(caught(Layer.LAUNCH), reason))
    if code == KE_LAUNCH_FAILED:
        reason = Entry(name="reason", value="the device did not take a launch (KE_LAUNCH_FAILED)")
        return Verdict(status=Status.LAUNCH_FAILED, evidence=(caught(Layer.LAUNCH), reason))
    return Verdict(
        status=Status.RUNTIME_ERROR, evidence=(caught(Layer.CRASH), Entry(name="return_code", value=str(code)))
    )


TELLING = (CAUGHT_BY, "reason")
"""Of a verdict on held-out values: what is wrong, and nothing about the values, their places or the limits."""


def _in_case(case: Case, verdict: Verdict, output: int | None = None, *, whole: bool = False) -> Verdict:
    """The verdict with where it fell. Held-out cases are told by kind only, so that no search learns their values.

    ``whole``: how a process ended has no values in it.
    """
    where: tuple[Entry, ...] = (Entry(name="case", value=case.name),)
    if output is not None:
        where += (Entry(name="output", value=str(output)),)
    told = verdict.evidence if case.public or whole else tuple(e for e in verdict.evidence if e.name in TELLING)
    return Verdict(status=verdict.status, evidence=(*told, *where))
