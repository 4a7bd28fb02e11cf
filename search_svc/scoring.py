"""What a verdict is worth (pure)."""

from __future__ import annotations

import math

from search_svc.tree import Reference
from shared.events import PPM, Basis, Estimate, Evaluation, Status, Trust

TRUST_ORDER = tuple(Trust)
TRUST_TO_WIN = Trust.L3
"""Below this level no winner is announced."""


def score_ppm(evaluation: Evaluation, baseline: str, reference: Reference | None) -> int:
    """What ``evaluation`` is worth in millionths; 0 for anything not PASSED or not comparable.

    Where kernels are timed it is the speedup over ``baseline``. With a ``reference`` it is the reference's cost over
    this one's, so that the reference itself scores 1 exactly.
    """
    if evaluation.status is not Status.PASSED:
        return 0
    if reference is not None:
        cost = _cost(evaluation, reference)
        return max(1, reference.cost * PPM // cost) if cost else 0
    speedup = evaluation.speedup(baseline)
    return speedup.ratio_ppm if speedup else 0


def incomparable(evaluation: Evaluation, reference: Reference | None) -> str:
    """Why a kernel that passed cannot be compared with the others of its search; empty when it can, or says nothing.

    One pool has one basis, so this is an error of ours.
    """
    estimate = evaluation.estimate
    if reference is None:
        return "estimated in a search whose kernels are timed" if estimate else ""
    if estimate is None:
        return f"timed in a search whose kernels are {reference.basis}" if evaluation.speedups else ""
    if _cost(evaluation, reference):
        return ""
    return f"{estimate.basis} in {estimate.unit}, the first draft {reference.basis} in {reference.unit}"


def comparable(estimate: Estimate, reference: Reference) -> bool:
    """Whether the two are in one unit, and known in one way."""
    return (estimate.basis, estimate.unit) == (reference.basis, reference.unit)


def _cost(evaluation: Evaluation, reference: Reference) -> int:
    """0 for none that is comparable."""
    estimate = evaluation.estimate
    return estimate.cost if estimate is not None and comparable(estimate, reference) else 0


def log_micro(ratio_ppm: int) -> int:
    """Natural logarithm of a speedup, in millionths: equal ratios are equal steps, whatever the kernel's time.

    A search that adds raw times instead explores more or less depending on the unit (milliseconds or microseconds).
    """
    return round(math.log(ratio_ppm / PPM) * PPM) if ratio_ppm > 0 else 0


def proves_gain(evaluation: Evaluation, baseline: str, reference: Reference | None) -> bool:
    """Whether it is better beyond doubt: its interval against ``baseline`` lies wholly above 1, by more than the
    worker's noise, or fewer events than the ``reference``'s were counted. No model proves anything.
    """
    if evaluation.status is not Status.PASSED:
        return False
    if reference is not None:
        return reference.basis is Basis.COUNTED and 0 < _cost(evaluation, reference) < reference.cost
    speedup = evaluation.speedup(baseline)
    return speedup is not None and speedup.proves_gain


def promising(evaluation: Evaluation, baseline: str, reference: Reference | None) -> bool:
    """Whether evaluating it again may end the search with it: it proves a gain, a model ranks it, or no less was
    counted than for the first draft, which may be it.
    """
    return proves_gain(evaluation, baseline, reference) or _ranked(evaluation, reference)


def wins(evaluation: Evaluation, baseline: str, reference: Reference | None) -> bool:
    """Whether a re-measurement supports announcing the candidate."""
    return _trusted(evaluation) and proves_gain(evaluation, baseline, reference)


def stands(evaluation: Evaluation, reference: Reference | None) -> bool:
    """Whether a search that improved nothing can end with it, where nothing has a time: it is right, and a model ranks
    it or no more was counted than for the first draft.
    """
    counted = reference is not None and reference.basis is Basis.COUNTED
    return _ranked(evaluation, reference) and (_trusted(evaluation) or not counted)


def _trusted(evaluation: Evaluation) -> bool:
    return TRUST_ORDER.index(evaluation.trust) >= TRUST_ORDER.index(TRUST_TO_WIN)


def _ranked(evaluation: Evaluation, reference: Reference | None) -> bool:
    if reference is None:
        return False
    score = score_ppm(evaluation, "", reference)
    return score > 0 if reference.basis is Basis.MODELLED else score >= PPM
