"""A candidate's history in a few words, for errors and reports (pure)."""

from __future__ import annotations

from search_svc.tree import Node, Tree
from shared.events import PPM, Event


def of_event(tree: Tree, event: Event) -> tuple[str, ...]:
    """The lines that lead to what ``event`` is about: from the draft down to its candidate, or to its parent."""
    candidate_id = getattr(event, "candidate_id", "")
    if candidate_id not in tree.nodes:
        expansion = tree.expansions.get(getattr(event, "expansion_id", ""))
        candidate_id = expansion.request.parent_ids[0] if expansion and expansion.request.parent_ids else ""
    return of_node(tree, candidate_id)


def of_node(tree: Tree, candidate_id: str) -> tuple[str, ...]:
    """One line per generation, oldest first; empty for an unknown candidate."""
    return tuple(reversed([line(node) for node in tree.lineage(candidate_id)]))


def line(node: Node) -> str:
    """``<id> <move> <status> <speedup>``; what was counted or modelled is said to be."""
    speedup = f" {node.score_ppm / PPM:.3f}x" if node.passed else ""
    estimate = node.evaluation.estimate if node.evaluation else None
    basis = f" {estimate.basis.value}" if estimate else ""
    return f"{node.candidate_id} {node.move.name} {node.label}{speedup}{basis}"
