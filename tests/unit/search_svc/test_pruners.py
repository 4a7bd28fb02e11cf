"""Each pruning rule closes what it names and nothing else."""

from __future__ import annotations

from dataclasses import replace

from search_svc import pruners
from tests.builders import a_search
from tests.unit.search_svc.trees import grown


def closed(tree):
    return {node.candidate_id: rule for node, rule, _ in pruners.closed(tree)}


def with_offspring(tree, name, **changes):
    node = tree.nodes[name]
    return replace(tree, nodes={**tree.nodes, name: replace(node, offspring=replace(node.offspring, **changes))})


def test_nothing_is_pruned_in_a_healthy_tree():
    assert closed(grown(a_search(), {"a": ("", 1.5), "b": ("a", 1.2), "c": ("a", 0)})) == {}


def test_a_node_the_synthesizer_has_exhausted_is_closed():
    tree = with_offspring(grown(a_search(), {"a": ("", 1.5), "b": ("", 1.2)}), "a", exhausted=True)
    assert closed(tree) == {"a": "exhausted"}


def test_a_failure_is_given_up_after_its_repairs():
    shape = {"a": ("", 0), "b": ("a", 0)}
    assert closed(grown(a_search(), shape)) == {}
    assert closed(grown(a_search(), {**shape, "c": ("a", 0)})) == {"a": "unrepaired"}


def test_a_chain_of_failures_is_a_dead_branch():
    tree = grown(a_search(), {"a": ("", 0), "b": ("a", 0), "c": ("b", 0)})
    assert closed(tree) == {"c": "dead_branch"}


def test_a_node_whose_children_keep_failing_is_a_dead_branch():
    children = {f"c{n}": ("a", 0) for n in range(pruners.FAILED_CHILDREN_MAX)}
    assert closed(grown(a_search(), {"a": ("", 2.0), **children})) == {"a": "dead_branch"}
    rescued = {"a": ("", 2.0), **children, "ok": ("a", 1.1)}
    assert closed(grown(a_search(), rescued)) == {}


def test_a_node_far_behind_many_better_ones_is_dominated():
    better = {f"b{n}": ("", 5.0) for n in range(pruners.DOMINATED_BY)}
    assert closed(grown(a_search(), {"slow": ("", 1.0), **better})) == {"slow": "dominated"}
    fewer = dict(list(better.items())[1:])
    assert closed(grown(a_search(), {"slow": ("", 1.0), **fewer})) == {}
    assert closed(grown(a_search(), {"close": ("", 2.0), **better})) == {}
