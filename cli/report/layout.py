"""Where the nodes of a search tree stand on paper (pure)."""

from __future__ import annotations

from search_svc.tree import Tree

ROOT = ""
"""The operator itself, above all drafts."""

Position = tuple[float, int]
"""Horizontal place, in widths of a leaf, and generation; the root is generation 0."""


def positions(tree: Tree) -> dict[str, Position]:
    """A place for the root and every node: leaves side by side in order of birth, parents above their children.

    A crossover stands under its first parent. Iterative, for a greedy search can be as deep as it is long.
    """
    children: dict[str, list[str]] = {ROOT: []}
    for node in tree.nodes.values():
        above = node.parent_ids[0] if node.parent_ids and node.parent_ids[0] in tree.nodes else ROOT
        children.setdefault(above, []).append(node.candidate_id)
        children.setdefault(node.candidate_id, [])
    depth = {ROOT: 0}
    order = [ROOT]
    for name in order:  # grows while it is read: breadth first
        for child in children[name]:
            depth[child] = depth[name] + 1
            order.append(child)
    across: dict[str, float] = {}
    for place, leaf in enumerate(_leaves(children)):
        across[leaf] = float(place)
    for name in reversed(order):
        if children[name]:
            across[name] = (across[children[name][0]] + across[children[name][-1]]) / 2
    return {name: (across.get(name, 0.0), depth[name]) for name in order}


def _leaves(children: dict[str, list[str]]) -> list[str]:
    leaves, stack = list[str](), [ROOT]
    while stack:
        name = stack.pop()
        if children[name]:
            stack.extend(reversed(children[name]))
        else:
            leaves.append(name)
    return leaves
