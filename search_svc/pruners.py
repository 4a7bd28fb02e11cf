"""Which nodes are closed to further expansion: one function per rule (pure).

A pruned node stays in the tree as memory. Every threshold is named here.
"""

from __future__ import annotations

from collections.abc import Callable

from search_svc.tree import Node, Tree

REPAIRS_MAX = 2
"""Expansions of a failed node; then it is given up."""

FAILED_CHILDREN_MAX = 6
"""Failed children in a row after which a branch counts as dead."""

DEAD_LINEAGE = 3
"""Failed generations in a row (the node, its parent, …) after which a repair chain counts as dead."""

DOMINATED_BY = 12
"""Better open nodes a node must have above it before it can count as dominated."""

DOMINATED_SHARE = 4
"""... and how many times slower, or costlier, than the best it must be."""

Rule = Callable[[Tree, Node], str]


def exhausted(tree: Tree, node: Node) -> str:
    """The synthesizer has nothing left from here."""
    del tree
    return (
        f"{node.offspring.barren + node.offspring.bad_texts} barren expansions in a row"
        if node.offspring.exhausted
        else ""
    )


def unrepaired(tree: Tree, node: Node) -> str:
    """A failure that its repairs did not mend."""
    del tree
    tried = node.offspring.expansions
    done = node.failed and tried >= REPAIRS_MAX and node.offspring.open == 0
    return f"{node.label} after {tried} repairs" if done else ""


def dead_branch(tree: Tree, node: Node) -> str:
    """Children that keep failing, or a chain of failures."""
    if node.offspring.failures >= FAILED_CHILDREN_MAX:
        return f"{node.offspring.failures} failed children in a row"
    chain = 0
    for ancestor in tree.lineage(node.candidate_id):
        if not ancestor.failed:
            break
        chain += 1
    return f"{chain} failed generations in a row" if chain >= DEAD_LINEAGE else ""


def dominated(tree: Tree, node: Node) -> str:
    """Far behind the best, with many better nodes still open."""
    best = tree.best
    if best is None or not node.passed or node.score_ppm * DOMINATED_SHARE >= best.score_ppm:
        return ""
    better = sum(not other.pruned and other.score_ppm > node.score_ppm for other in tree.passed())
    return f"{better} open nodes are better, the best {DOMINATED_SHARE}x or more" if better >= DOMINATED_BY else ""


RULES: dict[str, Rule] = {
    "exhausted": exhausted,
    "unrepaired": unrepaired,
    "dead_branch": dead_branch,
    "dominated": dominated,
}


def closed(tree: Tree) -> list[tuple[Node, str, str]]:
    """Open nodes that a rule closes now, in order of arrival, each with the first rule that does and its numbers."""
    found = []
    for node in tree.expandable():
        for name, rule in RULES.items():
            if detail := rule(tree, node):
                found.append((node, name, detail))
                break
    return found
