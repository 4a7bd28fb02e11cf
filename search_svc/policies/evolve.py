"""Evolution on islands: tournament selection, crossover of two parents, migration around a ring (pure).

A node's first island is where it was born; migration adds the island's best to the next one. Islands keep separate
lines alive that a single population would lose to the first lucky one (Tanese 1989; Romera-Paredes et al. 2024).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from search_svc.policies.parameters import parameter
from search_svc.policies.policy import Ask, cross, improve, ranked, reasons
from search_svc.tree import Node, Tree
from shared import ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolve:
    """``tournament``: contestants per selection. ``crossover``: chance that a child has two parents.
    ``migration_period``: verdicts between migrations. ``population``: best members of an island that may breed.
    """

    islands: int = parameter(2, 1, 64)
    population: int = parameter(4, 1, 1024)
    tournament: int = parameter(3, 1, 64)
    crossover: float = parameter(0.3, 0.0, 1.0)
    migration_period: int = parameter(8, 1, 10_000)

    def ask(self, tree: Tree, n: int) -> tuple[Ask, ...]:
        order = ranked(tree)
        first = len(tree.expansions)
        return tuple(self._breed(tree, order, ordinal) for ordinal in range(first, first + n))

    def tell(self, tree: Tree, node: Node) -> Tree:
        """Give the node its island; every ``migration_period`` verdicts, let the best of each island travel."""
        tree = _join(tree, node, self._birthplace(tree, node))
        return self._migrate(tree) if len(tree.verdicts) % self.migration_period == 0 else tree

    def _breed(self, tree: Tree, order: list[Node], ordinal: int) -> Ask:
        island = ordinal % self.islands
        rng = ids.stream(tree.search.seed, ordinal, "evolve")
        members = [node for node in order if island in node.statistics.islands][: self.population] or order
        first, position = self._tournament(members, rng)
        numbers = reasons(
            island=island,
            population=len(members),
            tournament=self.tournament,
            position=position,
            score_ppm=first.score_ppm,
        )
        others = [node for node in members if node is not first]
        if others and rng.random() < self.crossover:
            second, _ = self._tournament(others, rng)
            if not _crossed(tree, first, second):
                return cross(first, second, (*numbers, *reasons(second_score_ppm=second.score_ppm)))
        return improve(first, numbers)

    def _tournament(self, members: list[Node], rng: random.Random) -> tuple[Node, int]:
        """The best of a few draws; ``members`` are best first."""
        position = min(rng.randrange(len(members)) for _ in range(self.tournament))
        return members[position], position

    def _birthplace(self, tree: Tree, node: Node) -> int:
        asked_on = next((entry.value for entry in node.reasons if entry.name == "island"), "")
        if asked_on.isdigit():
            return int(asked_on) % self.islands
        inherited = tree.nodes[node.parent_ids[0]].statistics.islands if node.parent_ids else ()
        return inherited[0] if inherited else node.birth % self.islands

    def _migrate(self, tree: Tree) -> Tree:
        order = ranked(tree)
        for island in range(self.islands):
            best = next((node for node in order if island in node.statistics.islands), None)
            if best is not None:
                tree = _join(tree, best, (island + 1) % self.islands)
        return tree


def _join(tree: Tree, node: Node, island: int) -> Tree:
    statistics = tree.nodes[node.candidate_id].statistics
    if island in statistics.islands:
        return tree
    member = replace(
        tree.nodes[node.candidate_id], statistics=replace(statistics, islands=(*statistics.islands, island))
    )
    return replace(tree, nodes={**tree.nodes, node.candidate_id: member})


def _crossed(tree: Tree, first: Node, second: Node) -> bool:
    """Whether this pair was crossed before, either way round."""
    pair = sorted((first.candidate_id, second.candidate_id))
    return any(sorted(expansion.request.parent_ids) == pair for expansion in tree.expansions.values())
