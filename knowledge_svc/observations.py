"""From facts to observations: what one move did to one kernel (pure).

An observation pairs a child with its one parent. Both were timed against the same baseline, so the baseline cancels:
``child time / parent time = parent speedup / child speedup``. Where costs are counted on an emulator their ratio takes
the place of the times'; what a model says of a chip that is not there is evidence of nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared import ids
from shared.events import (
    NOT_THE_KERNELS_FAULT,
    Basis,
    Bound,
    CandidateProduced,
    EvaluationCompleted,
    Move,
    Purpose,
    Speedup,
    Status,
)

OPERATOR_CLASS = "operator_class"
"""Name of the move's parameter that says which kind of loop group changed, where the move's name does not."""
ANY_CLASS = "any"
CROSSOVER, JOINED = "crossover", " + "
NO_SKILL_PREFIXES = ("draft:", "repair:")
HALF_WIDTHS_SIGMA = 4.2
"""Standard errors of the median in half of a speedup's interval, of normal noise: 4.3 with 11 rounds, 4.2 with 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContext:
    """What a skill is about: move, operator class, chip, language and what the parent was bound by."""

    move: str
    operator_class: str
    chip: str
    language: str
    bound: Bound

    @property
    def skill_id(self) -> str:
        return ids.derive("skill", self.move, self.operator_class, self.chip, self.language, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A candidate that changed one thing in one parent."""

    search_id: str
    candidate_id: str
    parent_id: str
    kernel_id: str
    language: str
    move: str
    operator_class: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a search evaluation found, as far as skills need it."""

    kernel_id: str
    chip: str
    status: Status
    bound: Bound
    speedups: tuple[Speedup, ...]
    cost: int = 0
    """Of a call, counted exactly, in ``unit``; 0 for none. Beside no speedups."""
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One child against its parent. ``log_ratio`` is ln(child time / parent time), negative when faster; of costs where
    those are counted, with no noise.

    ``log_ratio`` and ``sigma`` (standard error of ``log_ratio``) are 0 when ``status`` is not PASSED.
    """

    candidate_id: str
    search_id: str
    parent_kernel_id: str
    kernel_id: str
    status: Status
    log_ratio: float = 0.0
    sigma: float = 0.0
    unit: str = ""
    """Of the counted costs that the ratio is one of; empty where times were measured."""


def trial(candidate: CandidateProduced) -> Trial | None:
    """``candidate`` as a trial of its move, or None when no single change can be credited with what happens.

    Drafts have no parent, crossovers two; joined moves change several things; repairs go back to what worked.
    """
    name = candidate.move.name
    if len(candidate.parent_ids) != 1 or name == CROSSOVER or JOINED in name or name.startswith(NO_SKILL_PREFIXES):
        return None
    return Trial(
        search_id=candidate.search_id,
        candidate_id=candidate.candidate_id,
        parent_id=candidate.parent_ids[0],
        kernel_id=candidate.kernel.kernel_id,
        language=candidate.kernel.language,
        move=name,
        operator_class=operator_class(candidate.move),
    )


def operator_class(move: Move) -> str:
    """The operator class a move names: its parameter, or what stands before the colon of its name; else empty."""
    named = {parameter.name: parameter.value for parameter in move.parameters}
    prefix, colon, _ = move.name.partition(":")
    found = named.get(OPERATOR_CLASS, prefix if colon else "")
    return "" if found == ANY_CLASS else found


def measured(completed: EvaluationCompleted) -> Measured | None:
    """What ``completed`` says of its kernel; None for final re-measurements and for endings not the kernel's doing."""
    found = completed.evaluation
    if completed.purpose is not Purpose.SEARCH or found.status in NOT_THE_KERNELS_FAULT:
        return None
    counted = found.estimate if found.estimate and found.estimate.basis is Basis.COUNTED else None
    return Measured(
        kernel_id=completed.kernel_id,
        chip=completed.chip,
        status=found.status,
        bound=found.diagnosis.bound,
        speedups=found.speedups,
        cost=counted.cost if counted else 0,
        unit=counted.unit if counted else "",
    )


def context(tried: Trial, parent: Measured) -> SkillContext:
    """The context in which ``tried``'s move was made; the bound is the one measured on the parent."""
    return SkillContext(
        move=tried.move,
        operator_class=tried.operator_class,
        chip=parent.chip,
        language=tried.language,
        bound=parent.bound,
    )


def observe(tried: Trial, child: Measured, parent: Measured) -> Observation | None:
    """What ``tried`` shows about its move, or None when it shows nothing.

    Nothing is learnt from a parent that did not pass (the move was a repair), or when the two were timed on different
    chips or against no common baseline. Of several common baselines the most precisely measured one counts.
    """
    if parent.status is not Status.PASSED or parent.chip != child.chip:
        return None
    log_ratio, sigma, unit = 0.0, 0.0, ""
    if child.status is Status.PASSED:
        compared = _compared(child, parent)
        if compared is None:
            return None
        log_ratio, sigma = compared
        unit = child.unit
    return Observation(
        candidate_id=tried.candidate_id,
        search_id=tried.search_id,
        parent_kernel_id=parent.kernel_id,
        kernel_id=child.kernel_id,
        status=child.status,
        log_ratio=log_ratio,
        sigma=sigma,
        unit=unit,
    )


def _compared(child: Measured, parent: Measured) -> tuple[float, float] | None:
    """ln(child / parent) of their times, or exact costs, and its standard error; None when they do not compare."""
    if child.cost and parent.cost and child.unit == parent.unit:
        return math.log(child.cost / parent.cost), 0.0
    pairs = [(p, c) for p in parent.speedups for c in child.speedups if p.baseline == c.baseline]
    if not pairs:
        return None
    before, after = min(pairs, key=lambda pair: (_noise(*pair), pair[0].baseline))
    return math.log(before.ratio_ppm / after.ratio_ppm), _noise(before, after)


def _noise(before: Speedup, after: Speedup) -> float:
    """Standard error of ln(before/after) from the two intervals."""
    return math.hypot(_sigma(before), _sigma(after))


def _sigma(speedup: Speedup) -> float:
    return math.log(max(speedup.high_ppm, 1) / max(speedup.low_ppm, 1)) / (2 * HALF_WIDTHS_SIGMA)
