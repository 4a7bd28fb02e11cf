"""Admission: whether an operator can be judged at all. Run once per operator, before any kernel.

A check that accepts zeros is worse than none, so an operator is refused unless its check kills every mutant (or its
contract states why one is exempt), its output varies with every input, and its reference repeats bit for bit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from evaluator_svc.arrays import Array, equal, flat
from evaluator_svc.cases import Case, Suite, widened
from evaluator_svc.catalogue import ALWAYS
from evaluator_svc.judge import judge
from evaluator_svc.limits import max_limit
from evaluator_svc.mutation import Fate, Killing, Score, accepts, coverage
from evaluator_svc.oracle import Oracle, new_seed
from shared.errors import OperatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the operator was admitted on. ``suite`` knows which cases are its core; all ``cases`` took part."""

    score: Score
    suite: Suite
    cases: int

    @property
    def killed(self) -> int:
        return self.score.killed

    @property
    def summary(self) -> str:
        """For evidence and the ledger."""
        line = f"{self.score.killed} of {self.score.total} mutants killed on {self.cases} sets"
        exempt = self.score.count(Fate.EXEMPT)
        return f"{line}, {exempt} exempt by contract" if exempt else line


async def admit(oracle: Oracle, suite: Suite, *, where: str) -> Admission:
    """Admit the operator behind ``oracle``.

    Raises:
        OperatorError: nondeterministic, changes inputs it does not declare, not finite, constant, blind to an input, or
            a mutant survives.
    """
    await _refuse_unrepeatable(oracle, suite, where)
    for case in suite.public:
        if not all(reference.finite for reference in case.references):
            raise OperatorError("its output is not finite on its own inputs", where=where)
    await asyncio.to_thread(_refuse_constant, suite, where)
    await _refuse_blind(oracle, suite, where)
    ordered = sorted(suite.cases, key=lambda case: (not case.public, case.name not in ALWAYS))
    suite = replace(suite, cases=tuple(ordered))
    killing = await _killing(oracle, suite, where)
    score = killing.score()
    _refuse_survivors(score, killing.names, suite.contract.exempt_mutants, where)
    counted, sets = await asyncio.to_thread(coverage, suite.cases)
    cases = tuple(
        replace(case, core=number in killing.core or case.name in ALWAYS) for number, case in enumerate(suite.cases)
    )
    return Admission(
        score=replace(score, telling=counted, sets=sets), suite=replace(suite, cases=cases), cases=len(cases)
    )


async def _killing(oracle: Oracle, suite: Suite, where: str) -> Killing:
    killing, public = Killing(suite.contract.exempt_mutants), suite.public
    names = await oracle.wrong_names()
    for number, case in enumerate(suite.cases):
        for output, reference in enumerate(case.references):
            if not await asyncio.to_thread(accepts, reference, flat(reference.declared)):
                raise OperatorError(f"output {output} of its own reference does not pass its check", where=where)
        stale = public[(number + 1) % len(public)] if case.public and len(public) > 1 else None
        await asyncio.to_thread(killing.outputs, number, case, stale)
        await killing.operator(number, case, oracle, names)
    return killing


def _refuse_survivors(score: Score, names: frozenset[str], exempt: Mapping[str, str], where: str) -> None:
    unknown = [name for name in exempt if name not in names]
    if unknown:
        raise OperatorError(
            f"CONTRACT['exempt_mutants'] names {unknown[0]!r}, which is no mutant of it",
            where=where,
            hint="`kernelevolve admit` lists them",
        )
    for outcome in score.outcomes:
        if outcome.fate is Fate.SURVIVED:
            raise OperatorError(
                f"its check cannot tell its output from a wrong one ({outcome.mutant})",
                where=where,
                hint="give inputs whose right answer differs from a trivial one, or exempt the mutant in CONTRACT",
            )


async def _refuse_unrepeatable(oracle: Oracle, suite: Suite, where: str) -> None:
    same, changed = await oracle.repeats(new_seed())
    undeclared = [index for index in changed if index not in suite.contract.mutates]
    if undeclared:
        raise OperatorError(
            f"Model.forward changes input {undeclared[0]} in place",
            where=where,
            hint=f"declare it: CONTRACT = {{'mutates': {list(changed)}}}",
        )
    if not same and not suite.contract.nondeterministic:
        raise OperatorError(
            "Model.forward is not deterministic: two runs on equal inputs differ",
            where=where,
            hint="remove dropout and other randomness, or declare CONTRACT = {'nondeterministic': True}",
        )


def _refuse_constant(suite: Suite, where: str) -> None:
    """The answer to one draw passes for that to another: nothing is computed from the inputs that the check sees."""
    first, *others = suite.public
    for output in range(len(suite.outputs)):
        mine = flat(first.references[output].declared)
        if others and all(_passes(other, output, mine) for other in others):
            raise OperatorError(
                f"output {output} is constant: it is the same for every draw of the inputs, but for rounding",
                where=where,
                hint="an operator must compute something from inputs that get_inputs() draws at random",
            )


def _passes(case: Case, output: int, data: Array) -> bool:
    reference = case.references[output]
    return equal(data, reference.declared) or judge(reference, data).passed


async def _refuse_blind(oracle: Oracle, suite: Suite, where: str) -> None:
    """Some output must move beyond its check's limit when any one input changes."""
    seed, other = new_seed(), new_seed()
    case, _ = await oracle.case(seed)
    assert case is not None  # own inputs are never skipped
    for index in range(len(suite.inputs)):
        outputs = await oracle.perturbed(seed, other, index)
        if outputs is None:
            continue  # the reference refuses the changed value, which is dependence enough
        moved, most = False, 0.0
        for reference, output in zip(case.references, outputs, strict=True):
            if output.size != reference.declared.size:
                raise OperatorError(
                    f"the shape of an output depends on the values of input {index}",
                    where=where,
                    hint="a kernel writes into outputs of a fixed shape",
                )
            if not reference.spec.dtype.floating:
                moved |= not equal(output, reference.declared)
                continue
            change = np.abs(widened(output, reference.spec.dtype) - widened(reference.declared, reference.spec.dtype))
            moved |= not float(change.max()) <= max_limit(reference)
            most = max(most, float(change.max()))
        if not moved and most > 0.0:
            raise OperatorError(
                f"its output depends on input {index} by less than its check can tell: other values change it by at "
                f"most {most:.3g}, within the error that its dtype allows",
                where=where,
                hint="return less of an average, or a more precise dtype: a kernel that ignores the input would pass",
            )
        if not moved:
            raise OperatorError(
                f"its output does not depend on input {index}",
                where=where,
                hint="remove the input: a kernel that ignores it would pass",
            )
