"""Mutation testing of an operator's check: which wrong answers its cases reject, and which cases that takes.

A kernel must pass every case, so a mutant is killed when one case rejects it. A mutant that changes nothing beyond the
reference's own rounding, on any case, is *equivalent* (DeMillo, Lipton and Sayward, Hints on Test Data Selection) and
no mutant of that operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evaluator_svc.arrays import Array, Bytes, chunk, equal, flat
from evaluator_svc.cases import Case, Demand, Reference, elements, errors, widened
from evaluator_svc.judge import judge
from evaluator_svc.limits import max_limit
from evaluator_svc.mutants import ROUNDED, mutants
from evaluator_svc.oracle import Oracle
from evaluator_svc.precision import LOW_FRACTION

STALE = "answer of another draw"
LOST = 1 / LOW_FRACTION
"""A rounding or another constant shows where it makes this many times the reference's own error: elsewhere the set says
nothing about precision (``precision.py``), or the constant is below it."""
COVERAGE_ELEMENTS = 1 << 23
"""Outputs of all cases together up to which it is counted which sets kill every mutant by themselves."""


class Fate(StrEnum):
    KILLED = "killed"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"
    EXEMPT = "exempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one mutant. ``by``: the case that killed it, or why it is exempt."""

    mutant: str
    fate: Fate
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Killed of all that are no equivalents. ``telling`` of ``sets`` kill every mutant of the outputs by themselves."""

    outcomes: tuple[Outcome, ...]
    telling: int = 0
    sets: int = 0

    def count(self, fate: Fate) -> int:
        return sum(outcome.fate is fate for outcome in self.outcomes)

    @property
    def killed(self) -> int:
        return self.count(Fate.KILLED)

    @property
    def total(self) -> int:
        return len(self.outcomes) - self.count(Fate.EQUIVALENT)


class Killing:
    """Grows case by case. ``core`` are the positions of cases that killed a mutant no case before them did."""

    def __init__(self, exempt: Mapping[str, str]) -> None:
        self._exempt = exempt
        self._by: dict[str, str] = {}
        self._alive: dict[str, None] = {}
        self._changed: set[str] = set()
        self.core: set[int] = set()

    def outputs(self, number: int, case: Case, stale: Case | None) -> None:
        """Mutants of the outputs alone."""
        for output, reference in enumerate(case.references):
            prefix = f"output {output}: " if len(case.references) > 1 else ""
            dead = {name.removeprefix(prefix) for name in self._by if name.startswith(prefix)}
            for name, data in _of_output(reference, stale.references[output] if stale else None, dead):
                got = elements(data, reference.spec.dtype)
                if not name.startswith(ROUNDED) or _changed(reference, got, LOST):
                    self._changed.add(prefix + name)
                self._told(prefix + name, number, case, rejected=not accepts(reference, data))

    async def operator(self, number: int, case: Case, oracle: Oracle, names: Sequence[str]) -> None:
        """Mutants of the operator itself."""
        for name in names:
            if name in self._by:
                continue
            outputs = await oracle.wrong(case, name)
            if outputs is None:
                continue
            own = 1.0 if name.startswith(("input ", "last element", "parameter")) else LOST
            verdicts = await asyncio.to_thread(_verdicts, case.references, outputs, own)
            if any(changed for changed, _ in verdicts):
                self._changed.add(name)
            self._told(name, number, case, rejected=any(rejected for _, rejected in verdicts))

    def score(self) -> Score:
        names = [*self._by, *(name for name in self._alive if name not in self._by)]
        return Score(outcomes=tuple(self._outcome(name) for name in names))

    @property
    def names(self) -> frozenset[str]:
        """Of every mutant met."""
        return frozenset((*self._by, *self._alive))

    def _told(self, name: str, number: int, case: Case, *, rejected: bool) -> None:
        if rejected:
            self._by[name] = case.name
            self.core.add(number)
        else:
            self._alive[name] = None

    def _outcome(self, name: str) -> Outcome:
        if name in self._by:
            return Outcome(mutant=name, fate=Fate.KILLED, by=self._by[name])
        if name not in self._changed:
            return Outcome(mutant=name, fate=Fate.EQUIVALENT)
        if name in self._exempt:
            return Outcome(mutant=name, fate=Fate.EXEMPT, by=self._exempt[name])
        return Outcome(mutant=name, fate=Fate.SURVIVED)


def accepts(reference: Reference, data: Bytes) -> bool:
    """Whether ``judge`` passes ``data``; most wrong answers are refused at their first wrong chunk."""
    dtype = reference.spec.dtype
    if dtype.floating and reference.finite and reference.demand is not Demand.BITS:
        got, limit = elements(data, dtype), max_limit(reference)
        step = chunk(got)
        with np.errstate(invalid="ignore", over="ignore"):
            for start in range(0, got.size, step):
                part = slice(start, start + step)
                if not float(np.abs(widened(got[part], dtype) - reference.exact[part]).max()) <= limit:
                    return False
    return judge(reference, data).passed


def telling(case: Case) -> bool:
    """Whether this set alone rejects every mutant of its outputs."""
    return all(not accepts(reference, data) for reference in case.references for _, data in mutants(reference))


def coverage(cases: Sequence[Case]) -> tuple[int, int]:
    """(sets that are telling, sets looked at): all, or the operator's own alone where outputs are large."""
    size = sum(reference.spec.numel for case in cases for reference in case.references)
    looked = [case for case in cases if case.public or size <= COVERAGE_ELEMENTS]
    return sum(telling(case) for case in looked), len(looked)


def _of_output(reference: Reference, stale: Reference | None, without: set[str]) -> Iterator[tuple[str, Array]]:
    yield from mutants(reference, without=without)
    if stale is not None and STALE not in without and not equal(stale.declared, reference.declared):
        yield STALE, flat(stale.declared)


def _verdicts(references: Sequence[Reference], outputs: Sequence[Array], own: float) -> list[tuple[bool, bool]]:
    """Per output: whether the mutant's differs from the reference by more than its own error, and is rejected."""
    found = []
    for reference, output in zip(references, outputs, strict=True):
        if output.size != reference.declared.size or output.dtype != reference.declared.dtype:
            found.append((True, True))
            continue
        found.append((_changed(reference, output, own), not accepts(reference, flat(output))))
    return found


def _changed(reference: Reference, output: Array, own: float) -> bool:
    """Whether the error is more than ``own`` times the reference's."""
    if equal(output, reference.declared):
        return False
    if not reference.spec.dtype.floating:
        return True
    among = None if reference.finite else reference.declared
    with np.errstate(invalid="ignore", over="ignore"):
        rmse, top = errors(output, reference.exact, reference.spec.dtype, among=among, kind=reference.spec.dtype)
    # A single largest error is chance where all that is asked is how precise the whole is.
    return not (rmse <= own * reference.rmse and (own > 1 or top <= reference.max_error))
