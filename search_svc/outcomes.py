"""What those who write the next kernel are told of moves made before (pure).

Of each node: what it did and what was measured of it. Told are the nodes a request names, the parents' ancestors, and
moves near by that failed or did not pay. A search that never asked a model tells nothing: schedules do not read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from search_svc import writers
from search_svc.policies.policy import Ask
from search_svc.tree import Node, Tree
from shared.error_signatures import signature
from shared.events import NOT_THE_KERNELS_FAULT, PPM, Memory, MoveOutcome

ANCESTORS_MAX = 8
"""Of each parent, itself included."""
SETBACKS_MAX = 16
RATIONALE_CHARS_MAX = 200
"""Of a move's rationale, which is a model's text."""


def shown(tree: Tree, ask: Ask, named: Iterable[Node]) -> tuple[MoveOutcome, ...]:
    """Outcomes for the expansion that ``ask`` wants: of the parents and their ancestors, of setbacks, of ``named``."""
    if not writers.shown(tree) or ask.memory is Memory.CLEAN:
        return ()
    lineages = (node for name in ask.parent_ids for node in _upwards(tree, name))
    told = {node.candidate_id: node for node in (*lineages, *_setbacks(tree, ask), *named) if node.evaluation}
    return tuple(outcome(tree, node) for node in told.values())


def outcome(tree: Tree, node: Node) -> MoveOutcome:
    """What came of ``node``, which has a verdict."""
    assert node.evaluation is not None
    move = replace(node.move, rationale=node.move.rationale[:RATIONALE_CHARS_MAX])
    return MoveOutcome(
        candidate_id=node.candidate_id,
        parent_ids=node.parent_ids,
        move=move,
        status=node.evaluation.status,
        bound=node.evaluation.diagnosis.bound,
        ratio_ppm=node.score_ppm,
        gain_ppm=_gain_ppm(tree, node),
        signature=signature(node.evaluation),
        basis=tree.reference.basis.value if tree.reference and node.score_ppm else "",
    )


def error_of(node: Node) -> str:
    """Which error ``node`` failed with; empty unless the verdict is against it."""
    return signature(node.evaluation) if node.failed and node.evaluation else ""


def _gain_ppm(tree: Tree, node: Node) -> int:
    """Both are divided by one baseline, or first draft, so it cancels; 0 unless both are."""
    before = tree.nodes[node.parent_ids[0]].score_ppm if node.parent_ids else 0
    return node.score_ppm * PPM // before if before and node.score_ppm else 0


def _upwards(tree: Tree, candidate_id: str) -> Iterator[Node]:
    for _, node in zip(range(ANCESTORS_MAX), tree.lineage(candidate_id), strict=False):
        yield node


def _setbacks(tree: Tree, ask: Ask) -> list[Node]:
    """The same error as the parent's first, then the parent's own children, then the newest elsewhere."""
    parent = tree.nodes[ask.parent_ids[0]] if ask.parent_ids else None
    error = error_of(parent) if parent else ""
    children = dict.fromkeys(parent.offspring.children if parent else tree.root.children)

    def rank(node: Node) -> tuple[bool, bool, int]:
        alike = bool(error) and error_of(node) == error
        return not alike, node.candidate_id not in children, -node.birth

    others = (node for node in tree.nodes.values() if node.candidate_id not in ask.parent_ids)
    return sorted((node for node in others if _set_back(tree, node)), key=rank)[:SETBACKS_MAX]


def _set_back(tree: Tree, node: Node) -> bool:
    if node.evaluation is None or node.evaluation.status in NOT_THE_KERNELS_FAULT:
        return False
    return node.failed or (node.passed and 0 < _gain_ppm(tree, node) <= PPM)
