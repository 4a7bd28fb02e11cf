"""Changing parts of an immutable tree: copies with one thing different (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from search_svc.tree import Node, Offspring, Tree

Value = TypeVar("Value")


def put(mapping: Mapping[str, Value], key: str, value: Value) -> dict[str, Value]:
    """A copy of ``mapping`` with ``key`` set."""
    return {**mapping, key: value}


def without(mapping: Mapping[str, Value], key: str) -> dict[str, Value]:
    """A copy of ``mapping`` without ``key``."""
    return {name: value for name, value in mapping.items() if name != key}


def change_offspring(tree: Tree, parent_ids: tuple[str, ...], change: Callable[[Offspring], Offspring]) -> Tree:
    """Change what came of the first parent, or of the root when there is none."""
    if not parent_ids:
        return replace(tree, root=change(tree.root))
    owner = tree.nodes[parent_ids[0]]
    return put_node(tree, replace(owner, offspring=change(owner.offspring)))


def put_node(tree: Tree, node: Node) -> Tree:
    return replace(tree, nodes=put(tree.nodes, node.candidate_id, node))
