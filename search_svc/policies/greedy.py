"""Best first, with patience: a node loses rank with each expansion that brought nothing better (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from search_svc.policies.parameters import parameter
from search_svc.policies.policy import Ask, improve, ranked, reasons
from search_svc.scoring import log_micro
from search_svc.tree import Node, Tree
from shared.events import PPM


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """``patience_cost``: how much of its speedup (as a natural logarithm) a node is discounted per expansion.

    0 would hammer the best node until it is exhausted; large values turn the search into breadth first.
    """

    patience_cost: float = parameter(0.05, 0.0, 10.0)

    def ask(self, tree: Tree, n: int) -> tuple[Ask, ...]:
        order = sorted(ranked(tree), key=lambda node: (-self._rank(node), node.candidate_id))
        return tuple(
            improve(
                node,
                reasons(
                    position=position,
                    score_ppm=node.score_ppm,
                    discounted_log_micro=self._rank(node),
                    expansions=node.offspring.expansions,
                ),
            )
            for position, node in enumerate(order[:n])
        )

    def tell(self, tree: Tree, node: Node) -> Tree:
        """Nothing to learn: scores and expansions are all it reads."""
        del node
        return tree

    def _rank(self, node: Node) -> int:
        return log_micro(node.score_ppm) - round(self.patience_cost * PPM) * node.offspring.expansions
