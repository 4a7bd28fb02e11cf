"""A search at a glance: what live views, reports and the final JSON read (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from search_svc import scoring
from search_svc.tree import Node, Reference, Tree
from shared.events import StageTimes, Usage
from shared.writers import INSTEAD_OF


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step of the progress curve: the best after ``evaluations`` verdicts."""

    evaluations: int
    candidate_id: str
    score_ppm: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts and ratios of one tree. ``statuses`` is in order of first appearance."""

    search_id: str
    nodes: int
    statuses: tuple[tuple[str, int], ...]
    charged: int
    budget: int
    verdicts: int
    synthesizing: int
    evaluating: int
    duplicates: int
    rejected: int
    pruned: int
    best_id: str
    best_score_ppm: int
    elapsed_ns: int
    """Between the submission and the last recorded fact, less downtime before a resume."""
    eta_ns: int
    """Time to the end of the evaluation budget or the wall clock, whichever is nearer; -1 while unknown."""
    phase: str
    """``searching``, ``confirming``, ``paused`` or ``finished``."""
    outcome: str
    reason: str
    detail: str
    """The synthesizer's words when it could not go on."""
    winner_id: str
    reference: Reference | None
    """What scores divide where kernels are estimated; None where they are timed."""
    spent: Usage
    """On models."""
    stood_in: tuple[int, str]
    """Candidates that schedules wrote because a model brought nothing, and why it was so for the last of them."""


def summarize(tree: Tree) -> Summary:
    """The summary of ``tree``."""
    verdicts = sum(node.evaluation is not None for node in tree.nodes.values())
    return Summary(
        search_id=tree.search.search_id,
        nodes=len(tree.nodes),
        statuses=_statuses(tree),
        charged=tree.charged,
        budget=tree.search.budget.evaluations,
        verdicts=verdicts,
        synthesizing=tree.open_slots,
        evaluating=len(tree.in_flight),
        duplicates=tree.duplicates,
        rejected=tree.rejected,
        pruned=sum(bool(node.pruned) for node in tree.nodes.values()),
        best_id=tree.best_id,
        best_score_ppm=tree.best.score_ppm if tree.best else 0,
        elapsed_ns=tree.elapsed_ns,
        eta_ns=_eta_ns(tree, verdicts),
        phase=_phase(tree),
        outcome=tree.outcome,
        reason=tree.reason or tree.limit or tree.halted[0],
        detail=tree.halted[1] or tree.synthesis_failure[1],
        winner_id=tree.winner_id,
        reference=tree.reference,
        spent=tree.spent,
        stood_in=_stood_in(tree),
    )


def progress(tree: Tree) -> tuple[Point, ...]:
    """The progress curve in order of verdicts; only the steps at which the best changed."""
    points: list[Point] = []
    for count, candidate_id in enumerate(tree.verdicts, start=1):
        node = tree.nodes[candidate_id]
        if node.passed and (not points or node.score_ppm > points[-1].score_ppm):
            points.append(Point(evaluations=count, candidate_id=candidate_id, score_ppm=node.score_ppm))
    return tuple(points)


def stage_totals(tree: Tree) -> StageTimes:
    """Where evaluation time went, summed over every verdict and final re-measurement that was not memoised."""
    done = [e for n in tree.nodes.values() for e in (n.evaluation, n.final) if e is not None and not e.memoised]
    return StageTimes(
        build_ns=sum(e.stages.build_ns for e in done),
        correctness_ns=sum(e.stages.correctness_ns for e in done),
        timing_ns=sum(e.stages.timing_ns for e in done),
        profile_ns=sum(e.stages.profile_ns for e in done),
        wait_ns=sum(e.stages.wait_ns for e in done),
        framework_ns=sum(e.stages.framework_ns for e in done),
    )


def winner(tree: Tree) -> Node | None:
    """The announced candidate; its published numbers are those of ``final``."""
    return tree.nodes.get(tree.winner_id)


def final_ppm(tree: Tree, node: Node) -> int:
    """The score of ``node`` by its last evaluation: as re-measured, where it was."""
    evaluation = node.final or node.evaluation
    return scoring.score_ppm(evaluation, tree.search.baseline, tree.reference) if evaluation else 0


def _statuses(tree: Tree) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for node in tree.nodes.values():
        counts[node.label] = counts.get(node.label, 0) + 1
    return tuple(counts.items())


def _stood_in(tree: Tree) -> tuple[int, str]:
    reasons = [
        entry.value for node in tree.nodes.values() for entry in node.move.parameters if entry.name == INSTEAD_OF
    ]
    return len(reasons), reasons[-1] if reasons else ""


def _phase(tree: Tree) -> str:
    if tree.finished:
        return "finished"
    if tree.limit:
        return "confirming"
    return "paused" if tree.paused else "searching"


def _eta_ns(tree: Tree, verdicts: int) -> int:
    if tree.finished:
        return 0
    elapsed_ns, budget = tree.elapsed_ns, tree.search.budget
    limits = [budget.wall_ns - elapsed_ns] if budget.wall_ns else []
    if verdicts and elapsed_ns > 0:
        limits.append(elapsed_ns * (budget.evaluations - verdicts) // verdicts)
    return max(0, min(limits)) if limits else -1
