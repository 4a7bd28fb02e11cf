"""Trees drawn in one line: ``grown(search, {"a": ("", 1.5), "b": ("a", 0)})``."""

from __future__ import annotations

from dataclasses import replace

from search_svc.apply import apply, start
from search_svc.invariants import validate
from search_svc.policies.policy import Ask
from search_svc.requests import evaluation, expansion
from search_svc.tree import Tree
from shared.events import Memory, NodePruned, Purpose, SearchStarted
from tests.builders import a_failure, a_pass, measured, produced


def grown(search: SearchStarted, shape, pruned=()) -> Tree:
    """The tree of ``search`` with candidates named and scored as drawn.

    ``shape`` maps a name to its parent, a name, a pair or "" for a draft, and its speedup: 0 for a failure, None for
    one whose verdict is outstanding. Budgets are raised so that no limit gets in the way.
    """
    room = replace(search, budget=replace(search.budget, evaluations=10_000), expansions_in_flight=10_000)
    tree = start(room)
    for name, (parents, score) in shape.items():
        parent_ids = parents if isinstance(parents, tuple) else (parents,) if parents else ()
        tree = _born(tree, name, parent_ids)
        request = evaluation(tree, tree.nodes[name], Purpose.SEARCH, attempt=1)
        tree = apply(tree, request)
        if score is not None:
            verdict = a_pass(round(score * 1_000_000)) if score else a_failure()
            tree = apply(tree, measured(request, verdict))
    for name in pruned:
        tree = apply(tree, NodePruned(search_id=search.search_id, candidate_id=name, rule="by hand"))
    tree = replace(tree, limit="")
    validate(tree)
    return tree


def _born(tree: Tree, name: str, parent_ids) -> Tree:
    request = expansion(tree, Ask(parent_ids=parent_ids, memory=Memory.PARENT, reasons=()), f"expansion-{name}", 1)
    return apply(apply(tree, request), replace(produced(request, 0, f"kernel-{name}"), candidate_id=name))
