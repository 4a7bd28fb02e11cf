"""From a wish to the full request: the events the search asks its workers with (pure)."""

from __future__ import annotations

from search_svc import outcomes, spending, writers
from search_svc.policies.policy import Ask
from search_svc.tree import Node, Tree
from shared import ids
from shared.events import EvaluationRequested, ExpansionRequested, Memory, Purpose

SIBLINGS_MAX = 4
"""Siblings an expansion sees, best first."""

NEGATIVE_MAX = 4
"""Failed nodes an expansion is told to avoid, nearest first, then newest."""

SEEDED_BY_ORDER = 2
"""The logic version from which an expansion's seed is its number in the search, of the same seed, operator and chip."""

SEED_DIGITS = 8
"""Hex digits of a derived id that make an expansion's seed: 32 bits."""


def expansion(tree: Tree, ask: Ask, expansion_id: str, count: int) -> ExpansionRequested:
    """The request for ``count`` candidates as ``ask`` wants them."""
    search = tree.search
    parents = tuple(tree.nodes[candidate_id] for candidate_id in ask.parent_ids)
    siblings = _siblings(tree, ask)
    negative = _negative(tree, ask)
    return ExpansionRequested(
        search_id=search.search_id,
        expansion_id=expansion_id,
        operator=search.operator,
        chip=search.chip,
        languages=search.languages,
        seed=_seed(tree, expansion_id),
        count=count,
        memory=ask.memory,
        parent_ids=ask.parent_ids,
        parents=tuple(parent.kernel for parent in parents),
        parent_evaluations=tuple(parent.evaluation for parent in parents if parent.evaluation is not None),
        siblings=tuple(node.kernel for node in siblings),
        sibling_ids=tuple(node.candidate_id for node in siblings),
        negative=tuple(node.kernel for node in negative),
        negative_ids=tuple(node.candidate_id for node in negative),
        known_kernel_ids=tuple(tree.kernels),
        threads=search.threads,
        reasons=ask.reasons,
        writers=writers.shown(tree),
        model_budget=search.budget.model,
        endpoints=spending.shown(tree),
        outcomes=outcomes.shown(tree, ask, (*siblings, *negative)),
        priors=ask.priors[:count],
    )


def _seed(tree: Tree, expansion_id: str) -> int:
    """A seed of its own for each expansion. Ids of expansions derive from that of the search, which holds the time, so
    version 1 drafted other schedules for the same ``--seed`` each time.
    """
    search = tree.search
    if search.logic_version < SEEDED_BY_ORDER:
        derived = ids.derive(search.seed, expansion_id)
    else:
        derived = ids.derive(search.seed, search.operator.source_hash, search.chip, len(tree.expansions))
    return int(derived[:SEED_DIGITS], 16)


def evaluation(tree: Tree, node: Node, purpose: Purpose, attempt: int) -> EvaluationRequested:
    """The request to measure ``node``; its id says which candidate, for what and which attempt."""
    search = tree.search
    return EvaluationRequested(
        search_id=search.search_id,
        evaluation_id=ids.derive(node.candidate_id, "evaluation", purpose.value, attempt),
        candidate_id=node.candidate_id,
        kernel=node.kernel,
        operator=search.operator,
        chip=search.chip,
        purpose=purpose,
        threads=search.threads,
        attempt=attempt,
        priority=search.priority,
    )


def _children(tree: Tree, ask: Ask) -> list[Node]:
    """Children of the asked parent, or the drafts: the siblings of what is to come."""
    owner = tree.nodes[ask.parent_ids[0]].offspring if ask.parent_ids else tree.root
    return [tree.nodes[key] for key in owner.children]


def _siblings(tree: Tree, ask: Ask) -> list[Node]:
    if ask.memory not in (Memory.SIBLINGS, Memory.PARENT_AND_SIBLINGS):
        return []
    passed = [node for node in _children(tree, ask) if node.passed]
    return sorted(passed, key=lambda node: (-node.score_ppm, node.candidate_id))[:SIBLINGS_MAX]


def _negative(tree: Tree, ask: Ask) -> list[Node]:
    """Failures to avoid: the parent's failed children first, then the newest elsewhere. A clean mind has none.

    Once a model has been asked, what failed as the parent did comes before all: it is shown what not to try again. The
    parent itself is shown anyway.
    """
    if ask.memory is Memory.CLEAN:
        return []
    near = {node.candidate_id: node for node in _children(tree, ask) if node.failed}
    newest = (node for node in reversed(list(tree.nodes.values())) if node.failed and node.candidate_id not in near)
    found = [*reversed(near.values()), *newest]
    if writers.shown(tree) and ask.parent_ids:
        error = outcomes.error_of(tree.nodes[ask.parent_ids[0]])
        found = [node for node in found if node.candidate_id not in ask.parent_ids]
        found.sort(key=lambda node: not error or outcomes.error_of(node) != error)
    return found[:NEGATIVE_MAX]
