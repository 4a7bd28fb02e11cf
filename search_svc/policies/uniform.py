"""The control: any passed node, all equally likely. A policy that does not beat it has not earned its name (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from search_svc.policies.policy import Ask, improve, ranked, reasons
from search_svc.tree import Node, Tree
from shared import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Takes no parameters."""

    def ask(self, tree: Tree, n: int) -> tuple[Ask, ...]:
        rng = ids.stream(tree.search.seed, len(tree.expansions), "uniform")
        pool = sorted(ranked(tree), key=lambda node: node.birth)
        chosen = (pool[rng.randrange(len(pool))] for _ in range(n))
        return tuple(improve(node, reasons(pool=len(pool), score_ppm=node.score_ppm)) for node in chosen)

    def tell(self, tree: Tree, node: Node) -> Tree:
        """Learns nothing, on purpose."""
        del node
        return tree
