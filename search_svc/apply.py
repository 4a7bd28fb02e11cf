"""``apply(tree, event) -> tree``: what every event, fact or command, means for the tree (pure).

``apply`` records; it decides nothing. A tree is the fold of ``apply`` over the journal's inputs and commands, which is
why it can be rebuilt without running any policy's choice again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from search_svc import limits, policies, scoring
from search_svc.tree import RETRYABLE, Expansion, FinalTry, Node, Offspring, Stage, Statistics, Tree
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionFailed,
    ExpansionRequested,
    NodePruned,
    Purpose,
    SearchCancelled,
    SearchFinished,
    SearchForked,
    SearchStarted,
    Status,
)

Value = TypeVar("Value")

BARREN_MAX = 3
"""Expansions of one node in a row without a new kernel, after which the node counts as exhausted."""

EXHAUSTED = "exhausted"
"""CandidateRejected code: the synthesizer has nothing left to try from this parent."""


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
            return _expansion_requested(tree, event)
        case CandidateProduced():
            return _candidate_produced(tree, event)
        case CandidateRejected():
            return _candidate_rejected(tree, event)
        case ExpansionFailed():
            return _expansion_failed(tree, event)
        case EvaluationRequested():
            return _evaluation_requested(tree, event)
        case EvaluationCompleted():
            return _evaluation_completed(tree, event)
        case NodePruned():
            return _node_pruned(tree, event)
        case SearchCancelled():
            return tree if tree.finished else replace(tree, limit="cancelled")
        case SearchForked():
            return _forked(tree, event)
        case SearchFinished():
            return replace(tree, outcome=event.outcome, reason=event.reason, winner_id=event.best_candidate_id)
        case SearchStarted():
            return replace(tree, ignored=tree.ignored + 1)
        case _:
            raise TypeError(f"{type(event).__name__} is not an event of a search")


def put(mapping: Mapping[str, Value], key: str, value: Value) -> dict[str, Value]:
    """A copy of ``mapping`` with ``key`` set."""
    return {**mapping, key: value}


def without(mapping: Mapping[str, Value], key: str) -> dict[str, Value]:
    """A copy of ``mapping`` without ``key``."""
    return {name: value for name, value in mapping.items() if name != key}


def _offspring(tree: Tree, parent_ids: tuple[str, ...], change: Callable[[Offspring], Offspring]) -> Tree:
    """Change what came of the first parent, or of the root when there is none."""
    if not parent_ids:
        return replace(tree, root=change(tree.root))
    owner = tree.nodes[parent_ids[0]]
    return _put_node(tree, replace(owner, offspring=change(owner.offspring)))


def _put_node(tree: Tree, node: Node) -> Tree:
    return replace(tree, nodes=put(tree.nodes, node.candidate_id, node))


# --- expansions ---------------------------------------------------------------------------------------------------


def _expansion_requested(tree: Tree, event: ExpansionRequested) -> Tree:
    known = tree.expansions.get(event.expansion_id)
    if known is not None:  # asked again, by a fork
        return replace(tree, expansions=put(tree.expansions, event.expansion_id, replace(known, request=event)))
    expansion = Expansion(request=event, open=tuple(range(event.count)))
    tree = replace(tree, expansions=put(tree.expansions, event.expansion_id, expansion))
    return _offspring(tree, event.parent_ids, lambda o: replace(o, expansions=o.expansions + 1, open=o.open + 1))


def _answered(
    tree: Tree, expansion_id: str, indices: tuple[int, ...], *, fresh: int = 0, code: str = "", failed: bool = False
) -> Tree:
    """Close ``indices`` of an expansion, and the expansion itself with its last one."""
    old = tree.expansions[expansion_id]
    expansion = replace(
        old,
        open=tuple(index for index in old.open if index not in indices),
        fresh=old.fresh + fresh,
        codes=(*old.codes, code) if code else old.codes,
    )
    tree = replace(tree, expansions=put(tree.expansions, expansion_id, expansion))
    return tree if expansion.open else _expansion_closed(tree, expansion, failed=failed)


def _expansion_closed(tree: Tree, expansion: Expansion, *, failed: bool) -> Tree:
    barren = expansion.fresh == 0
    # An empty crossing says nothing about either parent alone, a broken endpoint nothing about the space.
    silent = failed or len(expansion.request.parent_ids) > 1

    def close(offspring: Offspring) -> Offspring:
        if silent:
            return replace(offspring, open=offspring.open - 1)
        row = offspring.barren + 1 if barren else 0
        spent = offspring.exhausted or EXHAUSTED in expansion.codes or row >= BARREN_MAX
        return replace(offspring, open=offspring.open - 1, barren=row, exhausted=spent)

    if not failed:
        tree = replace(tree, barren_row=tree.barren_row + 1 if barren else 0)
    return _offspring(tree, expansion.request.parent_ids, close)


def _candidate_produced(tree: Tree, event: CandidateProduced) -> Tree:
    expansion = tree.expansions.get(event.expansion_id)
    if expansion is None or event.index not in expansion.open or event.candidate_id in tree.nodes:
        return replace(tree, ignored=tree.ignored + 1)
    tree = replace(tree, failed_expansions_row=0)
    if event.kernel.kernel_id in tree.kernels:
        tree = replace(tree, duplicates=tree.duplicates + 1)
        return _answered(tree, event.expansion_id, (event.index,), code="duplicate")
    node = Node(
        candidate_id=event.candidate_id,
        birth=len(tree.nodes),
        expansion_id=event.expansion_id,
        parent_ids=expansion.request.parent_ids,
        kernel=event.kernel,
        move=event.move,
        context=event.context,
        usage=event.usage,
        reasons=expansion.request.reasons,
        stage=Stage.SKIPPED if tree.limit or tree.finished else Stage.PENDING,
    )
    tree = replace(_put_node(tree, node), kernels=put(tree.kernels, node.kernel.kernel_id, node.candidate_id))
    tree = _offspring(tree, node.parent_ids, lambda o: replace(o, children=(*o.children, node.candidate_id)))
    return _answered(tree, event.expansion_id, (event.index,), fresh=1)


def _candidate_rejected(tree: Tree, event: CandidateRejected) -> Tree:
    expansion = tree.expansions.get(event.expansion_id)
    if expansion is None or event.index not in expansion.open:
        return replace(tree, ignored=tree.ignored + 1)
    tree = replace(tree, rejected=tree.rejected + 1, failed_expansions_row=0)
    return _answered(tree, event.expansion_id, (event.index,), code=event.code)


def _expansion_failed(tree: Tree, event: ExpansionFailed) -> Tree:
    expansion = tree.expansions.get(event.expansion_id)
    if expansion is None or not expansion.open:
        return replace(tree, ignored=tree.ignored + 1)
    row = tree.failed_expansions_row + 1
    tree = replace(tree, failed_expansions_row=row, synthesis_failure=(event.code, event.detail))
    return _answered(tree, event.expansion_id, expansion.open, code=event.code, failed=True)


# --- evaluations --------------------------------------------------------------------------------------------------


def _evaluation_requested(tree: Tree, event: EvaluationRequested) -> Tree:
    again = event.evaluation_id in tree.in_flight  # by a fork
    tree = replace(tree, in_flight=put(tree.in_flight, event.evaluation_id, event))
    if again:
        return tree
    if event.purpose is Purpose.FINAL:
        attempt = FinalTry(candidate_id=event.candidate_id, evaluation_id=event.evaluation_id, attempt=event.attempt)
        earlier = tuple(t for t in tree.finals if t.candidate_id != event.candidate_id)
        return replace(tree, finals=(*earlier, attempt))
    tree = replace(tree, charged=tree.charged + (event.attempt == 1))
    return _put_node(tree, replace(tree.nodes[event.candidate_id], attempt=event.attempt))


def _evaluation_completed(tree: Tree, event: EvaluationCompleted) -> Tree:
    request = tree.in_flight.get(event.evaluation_id)
    if request is None:
        return replace(tree, ignored=tree.ignored + 1)
    tree = replace(tree, in_flight=without(tree.in_flight, event.evaluation_id))
    again = event.evaluation.status in RETRYABLE and request.attempt < limits.ATTEMPTS_MAX
    if request.purpose is Purpose.FINAL:
        return tree if again else _final_verdict(tree, event)
    if again and not tree.limit and not tree.finished:
        return tree
    return _verdict(tree, event)


def _final_verdict(tree: Tree, event: EvaluationCompleted) -> Tree:
    finals = tuple(
        replace(t, evaluation=event.evaluation) if t.candidate_id == event.candidate_id else t for t in tree.finals
    )
    node = replace(tree.nodes[event.candidate_id], final=event.evaluation)
    return replace(_put_node(tree, node), finals=finals)


def _verdict(tree: Tree, event: EvaluationCompleted) -> Tree:
    old = tree.nodes[event.candidate_id]
    score = scoring.score_ppm(event.evaluation, tree.search.baseline)
    node = replace(old, stage=Stage.DONE, evaluation=event.evaluation, score_ppm=score)
    better = node.passed and (tree.best is None or score > tree.best.score_ppm)
    lost = event.evaluation.status is Status.INFRASTRUCTURE
    tree = replace(
        _put_node(tree, node),
        best_id=node.candidate_id if better else tree.best_id,
        since_best=0 if better else tree.since_best + 1,
        infrastructure_row=tree.infrastructure_row + 1 if lost else 0,
    )
    if node.passed or node.failed:
        failed = node.failed
        tree = _offspring(tree, node.parent_ids, lambda o: replace(o, failures=o.failures + 1 if failed else 0))
    return tell(replace(tree, verdicts=(*tree.verdicts, node.candidate_id)), node.candidate_id)


def tell(tree: Tree, candidate_id: str) -> Tree:
    """Let the search's policy learn from a verdict."""
    policy = policies.build(tree.search.policy, tree.search.policy_parameters)
    return policy.tell(tree, tree.nodes[candidate_id])


# --- pruning and forking ------------------------------------------------------------------------------------------


def _node_pruned(tree: Tree, event: NodePruned) -> Tree:
    node = tree.nodes.get(event.candidate_id)
    if node is None:
        return replace(tree, ignored=tree.ignored + 1)
    return _put_node(tree, replace(node, pruned=event.rule))


def _forked(tree: Tree, event: SearchForked) -> Tree:
    """Same history, another policy from here on: what the old policy concluded is dropped, what was measured stays."""
    elapsed_ns, verdicts = tree.now_ns - tree.search.at_ns, tree.verdicts
    search = replace(
        tree.search,
        search_id=event.search_id,
        policy=event.policy,
        policy_parameters=event.policy_parameters,
        seed=event.seed,
        at_ns=event.at_ns - elapsed_ns,
    )
    blank = {key: replace(node, final=None, statistics=Statistics()) for key, node in tree.nodes.items()}
    searching = {key: request for key, request in tree.in_flight.items() if request.purpose is Purpose.SEARCH}
    tree = replace(
        tree, search=search, nodes=blank, in_flight=searching, verdicts=(), finals=(), limit="", outcome="", reason="",
        winner_id="", synthesis_failure=("", ""), failed_expansions_row=0, infrastructure_row=0, now_ns=event.at_ns,
    )  # fmt: skip
    for candidate_id in verdicts:
        tree = tell(replace(tree, verdicts=(*tree.verdicts, candidate_id)), candidate_id)
    return tree
