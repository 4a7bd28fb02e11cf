"""``apply(tree, event) -> tree``: what every event, fact or command, means for the tree (pure).

Questions to the synthesizer and their answers are in ``apply_synthesis``, those of the evaluator in
``apply_evaluation``, the rest is here.

``apply`` records; it decides nothing. A tree is the fold of ``apply`` over the journal's inputs and commands, which is
why it can be rebuilt without running any policy's choice again.
"""

from __future__ import annotations

from dataclasses import replace

from search_svc import apply_evaluation, apply_synthesis, limits
from search_svc.tree import Statistics, Tree, put_node
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionFailed,
    ExpansionRequested,
    ModelBudget,
    NodePruned,
    Purpose,
    SearchCancelled,
    SearchFinished,
    SearchForked,
    SearchPaused,
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
            return apply_synthesis.expansion_requested(tree, event)
        case CandidateProduced():
            return apply_synthesis.candidate_produced(tree, event)
        case CandidateRejected():
            return apply_synthesis.candidate_rejected(tree, event)
        case ExpansionFailed():
            return apply_synthesis.expansion_failed(tree, event)
        case EvaluationRequested():
            return apply_evaluation.evaluation_requested(tree, event)
        case EvaluationCompleted():
            return apply_evaluation.evaluation_completed(tree, event)
        case NodePruned():
            return _pruned(tree, event)
        case SearchCancelled():
            return tree if tree.finished else replace(tree, limit="cancelled")
        case SearchForked():
            return _forked(tree, event)
        case SearchPaused():
            return replace(tree, paused=True)
        case SearchResumed():
            return _resumed(tree, event)
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


def _resumed(tree: Tree, event: SearchResumed) -> Tree:
    """Nobody searched since the latest fact, and what halted the search may be over."""
    old = tree.search.budget.model
    model = ModelBudget(tokens=event.model.tokens or old.tokens, cost_micro=event.model.cost_micro or old.cost_micro)
    return replace(
        tree,
        search=replace(tree.search, budget=replace(tree.search.budget, model=model)),
        down_ns=tree.down_ns + max(0, event.at_ns - tree.now_ns),
        halted=("", ""),
        paused=False,
        unanswered_row=0,
    )


def _forked(tree: Tree, event: SearchForked) -> Tree:
    """Same history, another policy from here on: what the old policy concluded is dropped, what was measured stays."""
    verdicts = tree.verdicts
    search = replace(
        tree.search,
        search_id=event.search_id,
        policy=event.policy,
        policy_parameters=event.policy_parameters,
        seed=event.seed,
        at_ns=event.at_ns - tree.elapsed_ns,
    )
    tree = Tree(
        search=search,
        nodes={key: replace(node, final=None, statistics=Statistics()) for key, node in tree.nodes.items()},
        expansions=tree.expansions,
        in_flight={key: request for key, request in tree.in_flight.items() if request.purpose is Purpose.SEARCH},
        kernels=tree.kernels,
        root=tree.root,
        charged=tree.charged,
        duplicates=tree.duplicates,
        rejected=tree.rejected,
        writers=tree.writers,
        endpoints=tree.endpoints,
        spent=tree.spent,
        reference=tree.reference,
        ignored=tree.ignored,
        best_id=tree.best_id,
        since_best=tree.since_best,
        barren_row=tree.barren_row,
        now_ns=event.at_ns,
    )
    for candidate_id in verdicts:
        tree = apply_evaluation.tell(replace(tree, verdicts=(*tree.verdicts, candidate_id)), candidate_id)
    return tree
