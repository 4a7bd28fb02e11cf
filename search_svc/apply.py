"""``apply(tree, event) -> tree``: what every event, fact or command, means for the tree (pure).

``apply`` records; it decides nothing. A tree is the fold of ``apply`` over the journal's inputs and commands, which is
why it can be rebuilt without running any policy's choice again.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc import expanding, forking, limits, measuring
from search_svc.changes import put_node
from search_svc.tree import Tree
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionFailed,
    ExpansionRequested,
    NodePruned,
    SearchCancelled,
    SearchFinished,
    SearchForked,
    SearchResumed,
    SearchStarted,
)


def start(event: SearchStarted) -> Tree:
    """The empty tree of a submitted search."""
    return Tree(search=event, now_ns=event.at_ns)


def apply(tree: Tree, event: Event) -> Tree:
    """``tree`` after ``event``. A fact that answers nothing outstanding only raises ``ignored``.

    Raises:
        TypeError: the event is none a search knows, e.g. a skill.
    """
    after = _applied(tree, event)
    after = replace(after, now_ns=max(after.now_ns, getattr(event, "at_ns", 0)))
    if after.limit or after.finished:
        return after
    return replace(after, limit=limits.reached(after))


def _applied(tree: Tree, event: Event) -> Tree:
    match event:
        case ExpansionRequested():
            return expanding.expansion_requested(tree, event)
        case CandidateProduced():
            return expanding.candidate_produced(tree, event)
        case CandidateRejected():
            return expanding.candidate_rejected(tree, event)
        case ExpansionFailed():
            return expanding.expansion_failed(tree, event)
        case EvaluationRequested():
            return measuring.evaluation_requested(tree, event)
        case EvaluationCompleted():
            return measuring.evaluation_completed(tree, event)
        case NodePruned():
            return _pruned(tree, event)
        case SearchCancelled():
            return tree if tree.finished else replace(tree, limit="cancelled")
        case SearchForked():
            return forking.forked(tree, event)
        case SearchResumed():
            return replace(tree, down_ns=tree.down_ns + max(0, event.at_ns - tree.now_ns))
        case SearchFinished():
            return replace(tree, outcome=event.outcome, reason=event.reason, winner_id=event.best_candidate_id)
        case SearchStarted():
            return replace(tree, ignored=tree.ignored + 1)
        case _:
            raise TypeError(f"{type(event).__name__} is not an event of a search")


def _pruned(tree: Tree, event: NodePruned) -> Tree:
    node = tree.nodes.get(event.candidate_id)
    if node is None:
        return replace(tree, ignored=tree.ignored + 1)
    return put_node(tree, replace(node, pruned=event.rule))
