"""What requests to the evaluator and its verdicts mean for the tree (pure)."""

from __future__ import annotations

from dataclasses import replace

from search_svc import limits, policies, scoring, spending, writers
from search_svc.tree import (
    RETRYABLE,
    FinalTry,
    Node,
    Reference,
    Stage,
    Tree,
    change_offspring,
    put,
    put_node,
    without,
)
from shared.events import NOT_THE_KERNELS_FAULT, Entry, EvaluationCompleted, EvaluationRequested, Purpose, Status

NOT_COMPARED = "not_compared"
"""The evidence entry that says why a kernel which passed scores nothing."""


def evaluation_requested(tree: Tree, event: EvaluationRequested) -> Tree:
    again = event.evaluation_id in tree.in_flight  # by a fork
    tree = replace(tree, in_flight=put(tree.in_flight, event.evaluation_id, event))
    if again:
        return tree
    if event.purpose is Purpose.FINAL:
        attempt = FinalTry(candidate_id=event.candidate_id, evaluation_id=event.evaluation_id, attempt=event.attempt)
        earlier = tuple(t for t in tree.finals if t.candidate_id != event.candidate_id)
        return replace(tree, finals=(*earlier, attempt))
    tree = replace(tree, charged=tree.charged + (event.attempt == 1))
    return put_node(tree, replace(tree.nodes[event.candidate_id], attempt=event.attempt))


def evaluation_completed(tree: Tree, event: EvaluationCompleted) -> Tree:
    request = tree.in_flight.get(event.evaluation_id)
    if request is None:
        return replace(tree, ignored=tree.ignored + 1)
    tree = replace(tree, in_flight=without(tree.in_flight, event.evaluation_id))
    uncounted = event.evaluation.status in RETRYABLE
    if request.purpose is Purpose.FINAL:
        again = uncounted and request.attempt < limits.FINAL_ATTEMPTS_MAX
        return tree if again else _final_verdict(tree, event)
    again = uncounted and request.attempt < limits.ATTEMPTS_MAX
    if again and not tree.limit and not tree.finished:
        return tree
    return _verdict(tree, event)


def _final_verdict(tree: Tree, event: EvaluationCompleted) -> Tree:
    finals = tuple(
        replace(t, evaluation=event.evaluation) if t.candidate_id == event.candidate_id else t for t in tree.finals
    )
    node = replace(tree.nodes[event.candidate_id], final=event.evaluation)
    return replace(put_node(tree, node), finals=finals)


def _verdict(tree: Tree, event: EvaluationCompleted) -> Tree:
    tree = _referred(tree, event)
    node = _scored(tree, event)
    if event.evaluation.status in NOT_THE_KERNELS_FAULT:
        return _given_up(put_node(tree, node), event.evaluation.status)
    better = node.passed and (tree.best is None or node.score_ppm > tree.best.score_ppm)
    tree = replace(
        put_node(spending.judged(writers.judged(tree, node), node), node),
        best_id=node.candidate_id if better else tree.best_id,
        since_best=0 if better else tree.since_best + 1,
        infrastructure_row=0,
        unmeasured_row=0,
        verdicts=(*tree.verdicts, node.candidate_id),
    )
    failed = node.failed
    tree = change_offspring(tree, node.parent_ids, lambda o: replace(o, failures=o.failures + 1 if failed else 0))
    return tell(tree, node.candidate_id)


def _referred(tree: Tree, event: EvaluationCompleted) -> Tree:
    """``tree`` with its reference: the first estimate, unless kernels of this search were timed before."""
    estimate = event.evaluation.estimate
    if estimate is None or tree.reference is not None or any(node.score_ppm for node in tree.passed()):
        return tree
    reference = Reference(candidate_id=event.candidate_id, basis=estimate.basis, cost=estimate.cost, unit=estimate.unit)
    return replace(tree, reference=reference)


def _scored(tree: Tree, event: EvaluationCompleted) -> Node:
    """The node with its verdict, which says so where it cannot be compared."""
    evaluation = event.evaluation
    if why := scoring.incomparable(evaluation, tree.reference):
        evidence = (*evaluation.evidence, Entry(name=NOT_COMPARED, value=why))
        evaluation = replace(evaluation, evidence=evidence)
    score = scoring.score_ppm(evaluation, tree.search.baseline, tree.reference)
    return replace(tree.nodes[event.candidate_id], stage=Stage.DONE, evaluation=evaluation, score_ppm=score)


def _given_up(tree: Tree, status: Status) -> Tree:
    """No attempt could measure a candidate: its evaluation goes back to the budget, and nobody learns from it."""
    lost = status is Status.INFRASTRUCTURE
    return replace(
        tree,
        charged=tree.charged - 1,
        infrastructure_row=tree.infrastructure_row + 1 if lost else 0,
        unmeasured_row=tree.unmeasured_row + 1,
    )


def tell(tree: Tree, candidate_id: str) -> Tree:
    """Let the search's policy learn from a verdict."""
    policy = policies.build(tree.search.policy, tree.search.policy_parameters)
    return policy.tell(tree, tree.nodes[candidate_id])
