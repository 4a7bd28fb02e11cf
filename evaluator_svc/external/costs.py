"""What a kernel that passed costs by its vendor's profiler: asked again and again in fresh processes, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evaluator_svc.arrays import Bytes
from evaluator_svc.cases import Case
from evaluator_svc.external import contract
from evaluator_svc.external.contract import Answer, Breach
from evaluator_svc.judge import Verdict, judge
from evaluator_svc.layers import Layer, caught
from evaluator_svc.poison import Poison
from evaluator_svc.repeatability import first_difference
from evaluator_svc.runner.ending import RunFailure
from shared.chips.external import External
from shared.errors import ChipError
from shared.events import Basis, Diagnosis, Entry, Estimate, Status

COUNTS_MAX = 24


class Profiles(Protocol):
    """What this stage needs of ``process.ExternalRunner``."""

    def write_input(self, set_: int, index: int, data: Any) -> None: ...
    def input_bytes(self, set_: int, index: int) -> memoryview: ...
    def output_bytes(self, set_: int, index: int) -> memoryview: ...
    async def profile(self, set_: int) -> Answer | RunFailure: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Costed:
    """``estimate`` is None where the verdict did not pass."""

    verdict: Verdict
    estimate: Estimate | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)


async def cost(
    runner: Profiles, case: Case, answers: Sequence[Bytes], poison: Poison, tools: External, chip: str
) -> Costed:
    """Profile ``case`` as often as the sheet says. Outputs of profiled calls are judged as those of others, and have to
    be ``answers`` again where there are any.

    Raises:
        ChipError: the adapter broke the contract.
    """
    counted = tools.basis == Basis.COUNTED
    costs: list[int] = []
    told: list[Answer] = []
    for _ in range(tools.repeat):
        plain = len(case.references) - len(case.in_place)
        for index, data in enumerate(case.inputs):
            runner.write_input(0, index, data)
        for output in range(len(case.references)):
            if output < plain:
                poison.apply(runner.output_bytes(0, output))
            else:
                position = case.in_place[output - plain]
                runner.output_bytes(0, output)[:] = memoryview(runner.input_bytes(0, position))
        answer = await runner.profile(0)
        if isinstance(answer, RunFailure):
            return Costed(verdict=_profiled(Verdict(status=answer.status, evidence=answer.evidence)))
        verdict = _judged(runner, case, answers, answer)
        if not verdict.passed:
            return Costed(verdict=_profiled(verdict))
        try:
            costs.append(contract.cost(answer.metrics or {}, tools.metric, counted=counted))
        except Breach as breach:
            raise ChipError(breach.what, where=f"chip {chip}, command `profile`", hint=breach.mend) from breach
        told.append(answer)
    if counted and len(set(costs)) > 1:
        seen = ", ".join(map(str, costs))
        evidence = (caught(Layer.DETERMINISM), Entry(name="reason", value=f"counts of equal calls differ: {seen}"))
        return Costed(verdict=Verdict(status=Status.NONDETERMINISTIC, evidence=evidence))
    chosen = sorted(range(len(costs)), key=lambda index: (costs[index], index))[len(costs) // 2]
    said = told[chosen]
    estimate = Estimate(
        basis=Basis(tools.basis),
        cost=costs[chosen],
        unit=tools.unit,
        counts=contract.counts(said.metrics or {})[:COUNTS_MAX],
    )
    spread = f"{tools.metric} of {len(costs)} profiles: {', '.join(map(str, costs))}"
    summary = said.summary or f"{tools.metric} by the vendor's profiler"
    facts = tuple(Entry(name=one.name, value=str(one.value)) for one in estimate.counts)
    diagnosis = Diagnosis(bound=said.bound, evidence=facts, summary=summary)
    verdict = Verdict(evidence=(Entry(name="profiles", value=spread),))
    return Costed(verdict=verdict, estimate=estimate, diagnosis=diagnosis)


def _judged(runner: Profiles, case: Case, answers: Sequence[Bytes], answer: Answer) -> Verdict:
    if answer.code != 0:
        evidence = (caught(Layer.CRASH), Entry(name="return_code", value=str(answer.code)))
        return Verdict(status=Status.RUNTIME_ERROR, evidence=evidence)
    for index, data in enumerate(case.inputs):
        if first_difference(data, runner.input_bytes(0, index)) is not None:
            evidence = (caught(Layer.INPUTS), Entry(name="reason", value=f"input {index} changed"))
            return Verdict(status=Status.MUTATED_INPUT, evidence=evidence)
    for index, reference in enumerate(case.references):
        verdict = judge(reference, runner.output_bytes(0, index))
        if not verdict.passed:
            return verdict
        if answers and first_difference(answers[index], runner.output_bytes(0, index)) is not None:
            reason = "the answer of a profiled call is another than that of the same call before"
            evidence = (caught(Layer.DETERMINISM), Entry(name="reason", value=reason))
            return Verdict(status=Status.NONDETERMINISTIC, evidence=evidence)
    return Verdict()


def _profiled(verdict: Verdict) -> Verdict:
    return Verdict(status=verdict.status, evidence=(*verdict.evidence, Entry(name="stage", value="profiled call")))
