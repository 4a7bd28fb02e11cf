"""What a person watching a search wants to know, folded from its facts (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shared.events import (
    PPM,
    CandidateProduced,
    CandidateRejected,
    Estimate,
    EvaluationCompleted,
    Event,
    ExpansionFailed,
    NodePruned,
    Purpose,
    SearchFinished,
    SearchPaused,
    SearchResumed,
    SearchStarted,
    Speedup,
    Status,
    Usage,
)
from shared.usage import by_a_model, total

RETRIED = (Status.NOISY, Status.INFRASTRUCTURE)
"""Statuses the search requeues: they end an attempt, not a candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of one search as its facts tell it."""

    budget: int = 0
    baseline: str = "best"
    started_ns: int = 0
    now_ns: int = 0
    produced: int = 0
    rejected: int = 0
    pruned: int = 0
    evaluated: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    """What each candidate tries, by candidate id."""
    open: int = 0
    """Candidates without a verdict."""
    best: Speedup | None = None
    first_draft: Estimate | None = None
    """What costs are compared with, where kernels are not timed."""
    cheapest: Estimate | None = None
    best_move: str = ""
    final_running: bool = False
    finished: SearchFinished | None = None
    paused: SearchPaused | None = None
    spent: Usage = field(default_factory=Usage)
    """On models."""

    @property
    def eta_ns(self) -> int | None:
        """Time left at the pace so far, or None before the first result."""
        if not self.evaluated or not self.budget:
            return None
        pace = (self.now_ns - self.started_ns) / self.evaluated
        return max(0, int(pace * (self.budget - self.evaluated)))


def fold(progress: Progress, event: Event) -> Progress:
    """``progress`` after one more fact."""
    if isinstance(event, CandidateProduced | CandidateRejected | ExpansionFailed) and by_a_model(event.usage):
        progress = replace(progress, spent=total(progress.spent, event.usage))
    return _folded(progress, event)


def _folded(progress: Progress, event: Event) -> Progress:
    match event:
        case SearchStarted():
            return replace(
                progress,
                budget=event.budget.evaluations,
                baseline=event.baseline,
                started_ns=event.at_ns,
                now_ns=event.at_ns,
            )
        case CandidateProduced():
            moves = {**progress.moves, event.candidate_id: event.move.name}
            return replace(
                progress, produced=progress.produced + 1, open=progress.open + 1, moves=moves, now_ns=event.at_ns
            )
        case SearchResumed():  # nobody searched in between
            down_ns = max(0, event.at_ns - progress.now_ns)
            started_ns, now_ns = progress.started_ns + down_ns, progress.now_ns + down_ns
            return replace(progress, started_ns=started_ns, now_ns=now_ns, paused=None)
        case SearchPaused():
            return replace(progress, paused=event)
        case CandidateRejected():
            return replace(progress, rejected=progress.rejected + 1)
        case EvaluationCompleted():
            return _completed(progress, event)
        case NodePruned():
            return replace(progress, pruned=progress.pruned + 1)
        case SearchFinished():
            return replace(progress, finished=event, final_running=False)
        case _:
            return progress


def _completed(progress: Progress, event: EvaluationCompleted) -> Progress:
    status = event.evaluation.status
    if event.purpose is Purpose.FINAL:
        return replace(progress, now_ns=event.at_ns)
    if status in RETRIED:
        return progress
    move = progress.moves.get(event.candidate_id, "")
    counts = {**progress.statuses, status.value: progress.statuses.get(status.value, 0) + 1}
    progress = replace(
        progress,
        open=progress.open - 1,
        statuses=counts,
        evaluated=progress.evaluated + 1,
        now_ns=max(progress.now_ns, event.at_ns),
    )
    if event.evaluation.estimate is not None:
        return _estimated(progress, event.evaluation.estimate, move)
    speedup = event.evaluation.speedup(progress.baseline)
    if speedup and (progress.best is None or speedup.ratio_ppm > progress.best.ratio_ppm):
        progress = replace(progress, best=speedup, best_move=move)
    return progress


def _estimated(progress: Progress, estimate: Estimate, move: str) -> Progress:
    first, cheapest = progress.first_draft, progress.cheapest
    if first is None or cheapest is None:
        return replace(progress, first_draft=estimate, cheapest=estimate, best_move=move)
    if estimate.cost < cheapest.cost and less_ppm(first, estimate):
        return replace(progress, cheapest=estimate, best_move=move)
    return progress


def less_ppm(first: Estimate, other: Estimate) -> int:
    """How many times less than the first draft another kernel costs, in millionths; 0 when they do not compare."""
    alike = (first.basis, first.unit) == (other.basis, other.unit)
    return max(1, first.cost * PPM // other.cost) if alike else 0


def ratio(ppm: int) -> str:
    """``1_532_000`` -> ``1.53x``."""
    return f"{ppm / PPM:.2f}x"
