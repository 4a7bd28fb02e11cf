"""What requests to the synthesizer and its answers mean for the tree (pure)."""

from __future__ import annotations

from dataclasses import replace

from search_svc import limits, spending, writers
from search_svc.tree import Expansion, Node, Offspring, Stage, Tree, change_offspring, put, put_node
from shared.events import CandidateProduced, CandidateRejected, ExpansionFailed, ExpansionRequested
from shared.model_errors import NO_ANSWER
from shared.usage import by_a_model

BARREN_MAX = 3
"""Expansions of one node in a row without a new kernel, after which the node counts as exhausted."""

EXHAUSTED, DUPLICATE = "exhausted", "duplicate"
"""CandidateRejected codes: the synthesizer has nothing left to try from this parent, or came to a known kernel. Others
are of texts that are no kernels: they say something of who wrote them, and little of what is left to try."""
BAD_TEXTS_MAX = 2 * BARREN_MAX
"""So many in a row exhaust a node, too: a model that cannot write for it must not go on for ever."""


def expansion_requested(tree: Tree, event: ExpansionRequested) -> Tree:
    known = tree.expansions.get(event.expansion_id)
    if known is not None:  # asked again, by a fork
        return replace(tree, expansions=put(tree.expansions, event.expansion_id, replace(known, request=event)))
    expansion = Expansion(request=event, open=tuple(range(event.count)))
    tree = replace(tree, expansions=put(tree.expansions, event.expansion_id, expansion))
    return change_offspring(tree, event.parent_ids, lambda o: replace(o, expansions=o.expansions + 1, open=o.open + 1))


def _answered(
    tree: Tree,
    expansion_id: str,
    indices: tuple[int, ...],
    *,
    fresh: int = 0,
    code: str = "",
    failed: bool = False,
    unanswered: bool = False,
) -> Tree:
    """Close ``indices`` of an expansion, and the expansion itself with its last one."""
    old = tree.expansions[expansion_id]
    expansion = replace(
        old,
        open=tuple(index for index in old.open if index not in indices),
        fresh=old.fresh + fresh,
        codes=(*old.codes, code) if code else old.codes,
        unanswered=old.unanswered + unanswered,
    )
    tree = replace(tree, expansions=put(tree.expansions, expansion_id, expansion))
    return tree if expansion.open else _expansion_closed(tree, expansion, failed=failed)


def _expansion_closed(tree: Tree, expansion: Expansion, *, failed: bool) -> Tree:
    barren = expansion.fresh == 0
    # An empty crossing says nothing about either parent alone, a broken endpoint nothing about the space.
    failed = failed or expansion.unanswered == expansion.request.count
    silent = failed or len(expansion.request.parent_ids) > 1

    def close(offspring: Offspring) -> Offspring:
        if silent:
            return replace(offspring, open=offspring.open - 1)
        known = EXHAUSTED in expansion.codes or DUPLICATE in expansion.codes
        row = offspring.barren + known if barren else 0
        bad = offspring.bad_texts + (not known) if barren else 0
        spent = offspring.exhausted or EXHAUSTED in expansion.codes or row >= BARREN_MAX or bad >= BAD_TEXTS_MAX
        return replace(offspring, open=offspring.open - 1, barren=row, bad_texts=bad, exhausted=spent)

    if not failed:
        tree = replace(tree, barren_row=tree.barren_row + 1 if barren else 0)
    return change_offspring(tree, expansion.request.parent_ids, close)


def candidate_produced(tree: Tree, event: CandidateProduced) -> Tree:
    expansion = tree.expansions.get(event.expansion_id)
    if expansion is None or event.index not in expansion.open or event.candidate_id in tree.nodes:
        return replace(tree, ignored=tree.ignored + 1)
    tree = spending.spent(replace(tree, failed_expansions_row=0, unanswered_row=0), event)
    if event.kernel.kernel_id in tree.kernels:
        tree = writers.fruitless(replace(tree, duplicates=tree.duplicates + 1), event)
        tree = spending.fruitless(tree, event)
        return _answered(tree, event.expansion_id, (event.index,), code=DUPLICATE)
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
    tree = replace(put_node(tree, node), kernels=put(tree.kernels, node.kernel.kernel_id, node.candidate_id))
    tree = change_offspring(tree, node.parent_ids, lambda o: replace(o, children=(*o.children, node.candidate_id)))
    return _answered(tree, event.expansion_id, (event.index,), fresh=1)


def candidate_rejected(tree: Tree, event: CandidateRejected) -> Tree:
    expansion = tree.expansions.get(event.expansion_id)
    if expansion is None or event.index not in expansion.open:
        return replace(tree, ignored=tree.ignored + 1)
    tree = replace(tree, rejected=tree.rejected + 1, failed_expansions_row=0)
    nobody_asked = event.code == EXHAUSTED and bool(event.context.asking) and not by_a_model(event.usage)
    if not nobody_asked:
        tree = writers.fruitless(tree, event)
    tree = spending.fruitless(spending.spent(tree, event), event)
    unanswered = bool(event.context.asking) and event.code in NO_ANSWER
    tree = _answered(tree, event.expansion_id, (event.index,), code=event.code, unanswered=unanswered)
    return _unanswered(tree, event) if unanswered else replace(tree, unanswered_row=0)


def _unanswered(tree: Tree, event: CandidateRejected) -> Tree:
    """Models that cannot answer, one expansion after the other, halt the search as one that says so does."""
    expansion = tree.expansions[event.expansion_id]
    if expansion.open or expansion.unanswered < expansion.request.count:
        return tree
    row = tree.unanswered_row + 1
    halts = row >= limits.UNANSWERED_ROW_MAX and not tree.halted[0]
    return replace(tree, unanswered_row=row, halted=(event.code, event.detail) if halts else tree.halted)


def expansion_failed(tree: Tree, event: ExpansionFailed) -> Tree:
    expansion = tree.expansions.get(event.expansion_id)
    if expansion is None or not expansion.open:
        return replace(tree, ignored=tree.ignored + 1)
    tree = spending.failed(spending.spent(tree, event), event)
    if event.pauses:
        tree = replace(tree, halted=tree.halted if tree.halted[0] else (event.code, event.detail))
    else:
        row = tree.failed_expansions_row + 1
        tree = replace(tree, failed_expansions_row=row, synthesis_failure=(event.code, event.detail))
    return _answered(tree, event.expansion_id, expansion.open, code=event.code, failed=True)
