"""What each policy chooses and why, and that each earns its name on a landscape with a known best."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from statistics import mean

import pytest

from search_svc import policies
from shared.errors import UserError
from shared.events import Entry, Memory
from tests.builders import a_search
from tests.fakes.drive import Drive
from tests.fakes.landscape import Landscape
from tests.unit.search_svc.trees import grown

POLICIES = ("greedy", "beam", "mcts", "evolve")
SEEDS = 3
BUDGET = 120
"""Evaluations in a space of 32,768 points."""


def reason(ask, name):
    return next(entry.value for entry in ask.reasons if entry.name == name)


def ask(tree, n=1):
    policy = policies.build(tree.search.policy, tree.search.policy_parameters)
    return policy.ask(tree, n)


def test_greedy_expands_the_best_node_first():
    tree = grown(a_search(policy="greedy"), {"a": ("", 1.2), "b": ("", 2.0), "c": ("", 1.6)})
    assert [choice.parent_ids for choice in ask(tree, 3)] == [("b",), ("c",), ("a",)]
    assert reason(ask(tree)[0], "score_ppm") == "2000000"


def test_greedy_loses_patience_with_a_node_that_brings_nothing_better():
    search = a_search(policy="greedy", parameters={"patience_cost": 0.2})
    tree = grown(search, {"a": ("", 2.0), "b": ("", 1.8), "c": ("a", 1.1)})
    assert ask(tree)[0].parent_ids == ("b",)


def test_beam_never_looks_beyond_its_width_and_takes_the_least_expanded_first():
    search = a_search(policy="beam", parameters={"width": 2})
    tree = grown(search, {"a": ("", 2.0), "b": ("", 1.8), "c": ("a", 1.1)})
    assert [choice.parent_ids for choice in ask(tree, 5)] == [("b",), ("a",)]
    assert reason(ask(tree)[0], "beam_width") == "2"


def test_mcts_descends_into_the_better_subtree():
    search = a_search(policy="mcts", parameters={"widening": 0.1, "exploration": 0})
    tree = grown(search, {"a": ("", 1.5), "b": ("", 1.5), "c": ("a", 1.2), "d": ("b", 3.0)})
    assert ask(tree)[0].parent_ids == ("d",)


def test_mcts_spreads_what_is_asked_at_once_by_virtual_loss():
    search = a_search(policy="mcts", parameters={"exploration": 0.5, "best_weight": 0})
    tree = grown(search, {"a": ("", 2.0), "b": ("", 1.98), "c": ("", 1.96), "slow": ("", 1.0)})
    assert len({choice.parent_ids for choice in ask(tree, 3)}) == 3


def test_mcts_counts_candidates_in_flight_as_losses():
    search = a_search(policy="mcts", parameters={"exploration": 0.5, "best_weight": 0})
    drafts = {"a": ("", 2.0), "b": ("", 1.98), "slow": ("", 1.0)}
    calm, busy = grown(search, drafts), grown(search, {**drafts, "x": ("a", None), "y": ("a", None)})
    assert ask(calm)[0].parent_ids == ("a",)
    assert ask(busy)[0].parent_ids == ("b",)


def test_mcts_widens_a_node_as_its_visits_grow():
    shape = {"a": ("", 1.5), "b": ("a", 1.6)}
    narrow = grown(a_search(policy="mcts", parameters={"widening": 0.5}), shape)
    wide = grown(a_search(policy="mcts", parameters={"widening": 3}), shape)
    assert ask(narrow)[0].parent_ids == ("b",)
    assert ask(wide)[0].parent_ids == ("a",)


@pytest.mark.parametrize("factor", [2, 50])
def test_mcts_chooses_alike_whatever_the_scale_of_the_speedups(factor):
    """Same shape, every speedup multiplied: the choice may not depend on a unit."""
    shape = {"a": ("", 1.5), "b": ("", 1.9), "c": ("b", 1.2), "d": ("b", 2.6), "e": ("a", 1.4)}
    scaled = {name: (parent, score * factor) for name, (parent, score) in shape.items()}
    plain, large = (grown(a_search(policy="mcts"), each) for each in (shape, scaled))
    assert [c.parent_ids for c in ask(plain, 4)] == [c.parent_ids for c in ask(large, 4)]


def test_mcts_backpropagates_every_verdict_to_the_ancestors():
    tree = grown(a_search(policy="mcts"), {"a": ("", 2.0), "b": ("a", 4.0), "c": ("b", 0)})
    a = tree.nodes["a"].statistics
    assert (a.visits, a.passes, a.value_micro, a.best_micro) == (3, 2, 693_147 + 1_386_294, 1_386_294)


def test_evolution_gives_drafts_to_islands_in_turn_and_children_to_their_parents_island():
    search = a_search(policy="evolve", parameters={"islands": 2, "migration_period": 100})
    tree = grown(search, {"a": ("", 1.5), "b": ("", 1.6), "c": ("b", 1.7)})
    assert {key: node.statistics.islands for key, node in tree.nodes.items()} == {"a": (0,), "b": (1,), "c": (1,)}


def test_the_best_of_each_island_migrates_to_the_next():
    search = a_search(policy="evolve", parameters={"islands": 3, "migration_period": 3})
    tree = grown(search, {"a": ("", 1.5), "b": ("", 1.6), "c": ("", 1.7)})
    assert {key: node.statistics.islands for key, node in tree.nodes.items()} == {"a": (0, 1), "b": (1, 2), "c": (2, 0)}


def test_evolution_crosses_two_parents_of_one_island_only_once():
    search = a_search(policy="evolve", parameters={"islands": 1, "crossover": 1})
    tree = grown(search, {"a": ("", 1.5), "b": ("", 1.6)})
    (choice,) = ask(tree)
    assert (sorted(choice.parent_ids), choice.memory) == (["a", "b"], Memory.PARENT_AND_SIBLINGS)
    crossed = grown(search, {"a": ("", 1.5), "b": ("", 1.6), "c": (choice.parent_ids, 0)})
    assert len(ask(crossed)[0].parent_ids) == 1


def test_the_winner_of_the_tournament_depends_on_the_seed_and_nothing_else():
    shape = {name: ("", 1 + position / 10) for position, name in enumerate("abcdefgh")}
    seeds = [a_search(policy="evolve", seed=seed, parameters={"tournament": 1, "crossover": 0}) for seed in range(12)]
    chosen = [ask(grown(search, shape))[0].parent_ids for search in seeds]
    assert chosen == [ask(grown(search, shape))[0].parent_ids for search in seeds]
    assert len(set(chosen)) > 3


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_no_policy_expands_a_pruned_or_failed_node(name):
    tree = grown(a_search(policy=name), {"a": ("", 1.5), "b": ("", 3.0), "c": ("b", 0), "d": ("", 1.2)}, pruned=("b",))
    for choice in ask(tree, 4):
        assert set(choice.parent_ids) <= {"a", "d"}
        assert choice.reasons


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_asking_and_telling_leave_the_tree_as_it_was(name):
    tree = grown(a_search(policy=name), {"a": ("", 1.5), "b": ("a", 1.7)})
    copy = replace(tree, nodes=dict(tree.nodes))
    ask(tree, 3)
    policies.build(name).tell(tree, tree.nodes["b"])
    assert tree == copy


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_the_readme_names_every_parameter_with_its_default(name):
    readme = (Path(policies.__file__).parent / "README.md").read_text()
    assert f"| `{name}`" in readme
    for parameter in fields(policies.REGISTRY[name]):
        row = next(line for line in readme.splitlines() if line.startswith("|") and f"`{parameter.name}`" in line)
        assert f"{parameter.default:g}" in row


def test_an_unknown_policy_is_one_clear_line_with_the_names():
    with pytest.raises(UserError, match=r"unknown policy `bfs` \(one of: greedy, beam, mcts, evolve, uniform\)"):
        policies.build("bfs")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((Entry(name="with", value="4"),), r"policy beam, parameter with: no such parameter \(beam takes: width\)"),
        ((Entry(name="width", value="0"),), r"parameter width: 0 is out of range \(1 to 256\)"),
        ((Entry(name="width", value="2.5"),), r"parameter width: `2.5` is not a whole number"),
        ((Entry(name="width", value="2"), Entry(name="width", value="3")), r"parameter width: given twice"),
        ((Entry(name="width", value="nan"),), r"is not a whole number"),
    ],
)
def test_a_bad_policy_parameter_is_one_clear_line(entries, message):
    with pytest.raises(UserError, match=message):
        policies.build("beam", entries)


def test_a_parameter_that_is_no_number_is_out_of_range():
    with pytest.raises(UserError, match="out of range"):
        policies.build("mcts", (Entry(name="exploration", value="nan"),))


def best_found(policy, seed, evaluations=BUDGET):
    drive = Drive(order_seed=seed, check=False)
    tree = drive.run(a_search(policy=policy, seed=seed, evaluations=evaluations))
    return tree.best.score_ppm


@pytest.fixture(scope="module")
def control():
    return mean(best_found("uniform", seed) for seed in range(SEEDS))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_finds_the_known_best_or_a_step_beside_it_and_beats_choosing_at_random(policy, control):
    found = [best_found(policy, seed) for seed in range(SEEDS)]
    land = Landscape()
    assert max(found) >= land.speedup_ppm((land.best[0] - 1, *land.best[1:]))
    assert mean(found) > 1.3 * control
