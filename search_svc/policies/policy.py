"""The policy interface, and what policies share: ranking, memory modes, reasons (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from search_svc.tree import Node, Tree
from shared.events import Entry, Memory, Prior


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A wish to expand. ``parent_ids``: none to draft, one to improve or repair, two to cross.

    ``reasons`` are the numbers the choice was made by; ``explain`` prints them. ``count``: candidates to ask for, 0 for
    as many as the search asks for at once. ``priors``: what a draft is written from, one candidate of each.
    """

    parent_ids: tuple[str, ...]
    memory: Memory
    reasons: tuple[Entry, ...]
    count: int = 0
    priors: tuple[Prior, ...] = ()


class Policy(Protocol):
    """Chooses where to search. Instances are frozen parameter sets: whatever a policy learns lives in the tree.

    Both methods are pure. Randomness comes from ``ids.stream`` keyed by the search's seed and the number of expansions
    so far, never from a generator that is kept.
    """

    def ask(self, tree: Tree, n: int) -> tuple[Ask, ...]:
        """At most ``n`` expansions to start now, best first, in a tree with at least one passed, unpruned node."""
        ...

    def tell(self, tree: Tree, node: Node) -> Tree:
        """``tree`` with the policy's statistics after ``node``, the last of ``tree.verdicts``, got its verdict."""
        ...


def ranked(tree: Tree) -> list[Node]:
    """Passed, unpruned nodes, highest score first; ids break ties."""
    return sorted(
        (node for node in tree.passed() if not node.pruned), key=lambda node: (-node.score_ppm, node.candidate_id)
    )


def reasons(**numbers: str | float) -> tuple[Entry, ...]:
    """Numbers as entries, floats to six digits so that they read the same everywhere."""
    return tuple(
        Entry(name=name, value=f"{value:.6f}" if isinstance(value, float) else str(value))
        for name, value in numbers.items()
    )


def improve(node: Node, numbers: Iterable[Entry]) -> Ask:
    """Expand one node: alone when it is childless, with its children in view afterwards."""
    memory = Memory.PARENT_AND_SIBLINGS if node.offspring.children else Memory.PARENT
    return Ask(parent_ids=(node.candidate_id,), memory=memory, reasons=tuple(numbers))


def cross(first: Node, second: Node, numbers: Iterable[Entry]) -> Ask:
    """Cross two nodes, both in view; the child counts as the first one's."""
    pair = (first.candidate_id, second.candidate_id)
    return Ask(parent_ids=pair, memory=Memory.PARENT_AND_SIBLINGS, reasons=tuple(numbers))
