"""Beam search: only the best ``width`` nodes are expanded, the least expanded of them first (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from search_svc.policies.parameters import parameter
from search_svc.policies.policy import Ask, improve, ranked, reasons
from search_svc.tree import Node, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Beam:
    """``width``: nodes kept. 1 is hill climbing."""

    width: int = parameter(4, 1, 256)

    def ask(self, tree: Tree, n: int) -> tuple[Ask, ...]:
        beam = list(enumerate(ranked(tree)[: self.width]))
        order = sorted(beam, key=lambda pair: (pair[1].offspring.expansions, pair[0]))
        return tuple(
            improve(
                node,
                reasons(
                    beam_position=position,
                    beam_width=self.width,
                    score_ppm=node.score_ppm,
                    expansions=node.offspring.expansions,
                ),
            )
            for position, node in order[:n]
        )

    def tell(self, tree: Tree, node: Node) -> Tree:
        """Nothing to learn: the beam is a view of the scores."""
        del node
        return tree
