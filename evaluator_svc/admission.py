"""Admission: whether an operator can be judged at all. Run once per operator, before any kernel.

A check that accepts zeros is worse than none, so an operator is refused unless its check kills every standard mutant,
its output varies with every input, and its reference repeats bit for bit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator_svc.cases import Case, Suite, widened
from evaluator_svc.judge import judge
from evaluator_svc.limits import max_limit
from evaluator_svc.mutants import mutants
from evaluator_svc.oracle import Oracle, new_seed
from shared.errors import OperatorError


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the operator was admitted on. ``killed`` counts pairs of output and mutant."""

    killed: int
    cases: int
    skipped: tuple[str, ...] = ()


async def admit(oracle: Oracle, suite: Suite, *, where: str) -> Admission:
    """Admit the operator behind ``oracle``.

    Raises:
        OperatorError: nondeterministic, not finite, constant, blind to an input, or a mutant survives.
    """
    if not await oracle.repeats(new_seed()):
        raise OperatorError(
            "Model.forward is not deterministic: two runs on equal inputs differ",
            where=where,
            hint="remove dropout and other randomness from the operator",
        )
    for case in suite.public:
        if not all(reference.finite for reference in case.references):
            raise OperatorError("its output is not finite on its own inputs", where=where)
    _refuse_constant(suite, where)
    await _refuse_blind(oracle, suite, where)
    killed = await asyncio.to_thread(refuse_weak, suite.cases, where)
    return Admission(killed=killed, cases=len(suite.cases), skipped=suite.skipped)


def refuse_weak(cases: Sequence[Case], where: str) -> int:
    """Number of mutants killed. A kernel must pass every case, so a mutant is killed when one case rejects it.

    Raises:
        OperatorError: naming a mutant that differs from the truth and that no case rejects.
    """
    killed: set[tuple[int, str]] = set()
    alive: dict[tuple[int, str], None] = {}
    for case in cases:
        for output, reference in enumerate(case.references):
            if not judge(reference, reference.declared.tobytes()).passed:
                raise OperatorError(f"output {output} of its own reference does not pass its check", where=where)
            dead = {name for at, name in killed if at == output}
            for name, data in mutants(reference, without=dead):
                if judge(reference, data).passed:
                    alive[output, name] = None
                else:
                    killed.add((output, name))
    for output, name in alive:
        if (output, name) not in killed:
            raise OperatorError(
                f"its check cannot tell output {output} from a wrong one ({name})",
                where=where,
                hint="give inputs whose right answer differs from a trivial one",
            )
    return len(killed)


def _refuse_constant(suite: Suite, where: str) -> None:
    """Equal outputs for different seeds, while the inputs differ or not: nothing is computed from the inputs."""
    first, *others = suite.public
    for output in range(len(suite.outputs)):
        mine = first.references[output].declared.tobytes()
        if others and all(mine == other.references[output].declared.tobytes() for other in others):
            raise OperatorError(
                f"output {output} is constant: it is the same for every draw of the inputs",
                where=where,
                hint="an operator must compute something from inputs that get_inputs() draws at random",
            )


async def _refuse_blind(oracle: Oracle, suite: Suite, where: str) -> None:
    """Some output must move beyond its check's limit when any one input changes."""
    seed, other = new_seed(), new_seed()
    case, _ = await oracle.case(seed)
    assert case is not None  # own inputs are never skipped
    for index in range(len(suite.inputs)):
        outputs = await oracle.perturbed(seed, other, index)
        if outputs is None:
            continue  # the reference refuses the changed value, which is dependence enough
        moved = False
        for reference, output in zip(case.references, outputs, strict=True):
            if output.size != reference.declared.size:
                raise OperatorError(
                    f"the shape of an output depends on the values of input {index}",
                    where=where,
                    hint="a kernel writes into outputs of a fixed shape",
                )
            if not reference.spec.dtype.floating:
                moved |= output.tobytes() != reference.declared.tobytes()
                continue
            change = np.abs(widened(output, reference.spec.dtype) - widened(reference.declared, reference.spec.dtype))
            moved |= not float(change.max()) <= max_limit(reference)
        if not moved:
            raise OperatorError(
                f"its output does not depend on input {index}",
                where=where,
                hint="remove the input: a kernel that ignores it would pass",
            )
