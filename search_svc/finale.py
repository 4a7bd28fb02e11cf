"""The final stage: who is re-measured, and how a search ends (pure)."""

from __future__ import annotations

from search_svc import limits, requests, scoring
from search_svc.tree import FinalTry, Node, Tree
from shared.events import EvaluationRequested, Purpose, SearchFinished

ESTIMATED = "estimated"
"""The outcome of a search without a clock that proved no gain: right, and by model or count the best; no time was
measured."""

AT_ONCE = ("cancelled", limits.UNSUPPORTED)
"""Limits that end a search without waiting for anything."""


def step(tree: Tree) -> EvaluationRequested | SearchFinished | None:
    """What to do next in a search that has reached a limit; None while a verdict is outstanding."""
    if tree.limit in AT_ONCE:
        return _finished(tree, "cancelled" if tree.limit == "cancelled" else "failed")
    if tree.pending:
        return None
    current = tree.finals[-1] if tree.finals else None
    if current is not None:
        if current.evaluation is None:
            return None if current.evaluation_id in tree.in_flight else _again(tree, current)
        if scoring.wins(current.evaluation, tree.search.baseline, tree.reference):
            return _finished(tree, "improved", current)
        if scoring.stands(current.evaluation, tree.reference):
            return _finished(tree, ESTIMATED, current)
    if len(tree.finals) < limits.FINAL_TRIES_MAX and (node := _next(tree)):
        return requests.evaluation(tree, node, Purpose.FINAL, attempt=1)
    return _finished(tree, "no_improvement" if any(tree.passed()) else "failed")


def _again(tree: Tree, current: FinalTry) -> EvaluationRequested:
    return requests.evaluation(tree, tree.nodes[current.candidate_id], Purpose.FINAL, attempt=current.attempt + 1)


def _next(tree: Tree) -> Node | None:
    """The best candidate that may end the search and was not tried yet: one whose search-time interval excludes 1,
    that was counted to cost no more than the first draft, or that a model ranks, be it the first draft itself.
    """
    tried = [final.candidate_id for final in tree.finals]
    hopeful = (
        node
        for node in tree.passed()
        if node.candidate_id not in tried
        and node.evaluation is not None
        and scoring.promising(node.evaluation, tree.search.baseline, tree.reference)
    )
    return min(hopeful, key=lambda node: (-node.score_ppm, node.candidate_id), default=None)


def _finished(tree: Tree, outcome: str, winner: FinalTry | None = None) -> SearchFinished:
    return SearchFinished(
        search_id=tree.search.search_id,
        outcome=outcome,
        reason=tree.limit,
        evaluations=tree.charged,
        best_candidate_id=winner.candidate_id if winner else "",
        final_evaluation_id=winner.evaluation_id if winner else "",
    )
