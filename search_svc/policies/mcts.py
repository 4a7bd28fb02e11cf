"""Monte Carlo tree search: UCT on a unit-free reward, virtual loss, progressive widening (pure).

The reward of a verdict is the logarithm of its speedup, scaled to 0..1 by the smallest and largest seen in this search
(a failure is 0), so the exploration constant means the same for a kernel of 20 microseconds and one of 50
milliseconds. UCT: Kocsis and Szepesvári 2006; min-max scaling: Schrittwieser et al. 2020 (MuZero), appendix B;
progressive widening: Coulom 2007; virtual loss: Chaslot et al. 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from search_svc.policies.parameters import parameter
from search_svc.policies.policy import Ask, improve, reasons
from search_svc.scoring import log_micro
from search_svc.tree import Node, Stage, Statistics, Tree
from shared.events import PPM


@dataclass(frozen=True, slots=True, kw_only=True)
class Mcts:
    """``exploration``: weight of the UCT bonus. ``best_weight``: share of a subtree's best, against its mean, in its
    value; optimisation wants the best, noise wants the mean. A node may have ``widening * visits ** exponent``
    children before the search prefers to go deeper. The defaults suit budgets of 40 to 200 evaluations, where a
    wide tree would never get deep.
    """

    exploration: float = parameter(0.1, 0.0, 10.0)
    best_weight: float = parameter(0.8, 0.0, 1.0)
    widening: float = parameter(1.0, 0.1, 100.0)
    exponent: float = parameter(0.3, 0.0, 1.0)

    def ask(self, tree: Tree, n: int) -> tuple[Ask, ...]:
        live, loads = _live(tree), _loads(tree)
        asks: list[Ask] = []
        for _ in range(n):
            ask, path = self._select(tree, live, loads)
            asks.append(ask)
            for candidate_id in path:
                loads[candidate_id] = loads.get(candidate_id, 0) + tree.search.candidates_per_expansion
        return tuple(asks)

    def tell(self, tree: Tree, node: Node) -> Tree:
        """Backpropagate one visit to the node and its ancestors through first parents."""
        nodes = dict(tree.nodes)
        for ancestor in tree.lineage(node.candidate_id):
            statistics = _visited(ancestor.statistics, node)
            nodes[ancestor.candidate_id] = replace(ancestor, statistics=statistics)
        return replace(tree, nodes=nodes)

    def _select(self, tree: Tree, live: dict[str, None], loads: dict[str, int]) -> tuple[Ask, list[str]]:
        """Walk down from the drafts by UCT until a node may be widened; the ask and the path to it."""
        low, high = _range(tree)
        path: list[str] = []
        children, visits, chosen_by = tree.root.children, len(tree.verdicts), 0
        while True:
            options = [tree.nodes[key] for key in children if key in live]
            bounds = {node.candidate_id: self._uct(node, visits, loads, low, high) for node in options}
            node = max(options, key=lambda option: (bounds[option.candidate_id], option.candidate_id))
            path.append(node.candidate_id)
            chosen_by = bounds[node.candidate_id]
            visits = node.statistics.visits + loads.get(node.candidate_id, 0)
            deeper = any(key in live for key in node.offspring.children)
            if node.passed and not node.pruned and (not deeper or self._may_widen(tree, node, visits)):
                break
            children = node.offspring.children
        numbers = reasons(
            uct_micro=chosen_by,
            value_micro=self._value(node.statistics, 0, low, high),
            visits=node.statistics.visits,
            in_flight=loads.get(node.candidate_id, 0),
            depth=len(path),
            score_ppm=node.score_ppm,
        )
        return improve(node, numbers), path

    def _may_widen(self, tree: Tree, node: Node, visits: int) -> bool:
        coming = node.offspring.open * tree.search.candidates_per_expansion
        allowed = self.widening * math.pow(max(visits, 1), self.exponent)
        return len(node.offspring.children) + coming < allowed

    def _uct(self, node: Node, parent_visits: int, loads: dict[str, int], low: int, high: int) -> int:
        """Upper confidence bound in millionths; rounded, so that no libm's last digit decides."""
        load = loads.get(node.candidate_id, 0)
        visits = max(node.statistics.visits + load, 1)
        bonus = self.exploration * math.sqrt(math.log(max(parent_visits, 2)) / visits)
        return self._value(node.statistics, load, low, high) + round(bonus * PPM)

    def _value(self, statistics: Statistics, load: int, low: int, high: int) -> int:
        """Value of a subtree in millionths of the range seen; each candidate in flight counts as a loss so far."""
        if not statistics.passes:
            return 0
        span = max(high - low, 1)
        mean = (statistics.value_micro - statistics.passes * low) / span / max(statistics.visits + load, 1)
        best = (statistics.best_micro - low) / span
        return round((self.best_weight * best + (1 - self.best_weight) * mean) * PPM)


def _visited(old: Statistics, node: Node) -> Statistics:
    if not node.passed:
        return replace(old, visits=old.visits + 1)
    value = log_micro(node.score_ppm)
    return replace(
        old,
        visits=old.visits + 1,
        passes=old.passes + 1,
        value_micro=old.value_micro + value,
        best_micro=max(old.best_micro, value) if old.passes else value,
    )


def _range(tree: Tree) -> tuple[int, int]:
    values = [log_micro(node.score_ppm) for node in tree.passed()]
    return min(values), max(values)


def _live(tree: Tree) -> dict[str, None]:
    """Nodes that are expandable or have such a descendant (a dict for its order and its look-up)."""
    live: dict[str, None] = {}
    for node in tree.passed():
        if not node.pruned:
            live.update((ancestor.candidate_id, None) for ancestor in tree.lineage(node.candidate_id))
    return live


def _loads(tree: Tree) -> dict[str, int]:
    """Candidates in flight under each node: what the virtual loss is taken on."""
    loads: dict[str, int] = {}
    for expansion in tree.expansions.values():
        if expansion.open and expansion.request.parent_ids:
            for ancestor in tree.lineage(expansion.request.parent_ids[0]):
                loads[ancestor.candidate_id] = loads.get(ancestor.candidate_id, 0) + len(expansion.open)
    for node in tree.nodes.values():
        if node.stage is Stage.PENDING:
            for ancestor in tree.lineage(node.candidate_id):
                loads[ancestor.candidate_id] = loads.get(ancestor.candidate_id, 0) + 1
    return loads
