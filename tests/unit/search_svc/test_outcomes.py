"""What an expansion is told of moves made before."""

from __future__ import annotations

from dataclasses import replace

from search_svc import outcomes, requests
from search_svc.policies.policy import Ask
from shared.events import Entry, Evaluation, Memory, Status, WriterRecord
from tests.builders import a_search
from tests.unit.search_svc.trees import grown

ASKED = WriterRecord(writer="whole", attempts_milli=1000, gains_milli=0, gain_micro=0, time_ns=0, cost_micro=0)
SHAPE = {"a": ("", 1.5), "b": ("a", 2.0), "c": ("b", 1.0), "d": ("b", 0), "e": ("", 0), "f": ("a", 1.5)}


def a_tree(shape=None, errors=()):
    """``SHAPE`` of a search that has asked a model; ``errors`` are (name, message) of failures."""
    tree = replace(grown(a_search(), shape or SHAPE), writers={"whole": ASKED})
    nodes = dict(tree.nodes)
    for name, why in errors:
        evaluation = Evaluation(status=Status.COMPILE_ERROR, evidence=(Entry(name="first_error", value=why),))
        nodes[name] = replace(nodes[name], evaluation=evaluation)
    return replace(tree, nodes=nodes)


def asked(tree, *parent_ids, memory=Memory.PARENT_AND_SIBLINGS):
    return requests.expansion(tree, Ask(parent_ids=parent_ids, memory=memory, reasons=()), "e", 1)


def names(request):
    return [outcome.candidate_id for outcome in request.outcomes]


def test_the_parents_come_first_then_their_ancestors():
    assert names(asked(a_tree(), "b"))[:2] == ["b", "a"]


def test_a_move_is_told_with_what_it_brought_over_the_baseline_and_over_its_parent():
    found = {outcome.candidate_id: outcome for outcome in asked(a_tree(), "b").outcomes}
    assert (found["b"].ratio_ppm, found["b"].gain_ppm) == (2_000_000, 1_333_333)
    assert (found["c"].ratio_ppm, found["c"].gain_ppm) == (1_000_000, 500_000)
    assert (found["a"].ratio_ppm, found["a"].gain_ppm) == (1_500_000, 0)
    assert (found["d"].ratio_ppm, found["d"].signature) == (0, "WRONG_RESULT made up")


def test_moves_that_did_not_pay_and_failures_are_told_nearest_first():
    setbacks = [name for name in names(asked(a_tree(), "b", memory=Memory.PARENT)) if name not in ("a", "b")]
    assert setbacks[:2] == ["d", "c"]  # both children of b: failed, and slower
    assert set(setbacks[2:]) == {"e", "f"}


def test_a_clean_mind_is_told_nothing_and_a_search_without_a_model_neither():
    assert asked(a_tree(), "b", memory=Memory.CLEAN).outcomes == ()
    assert asked(replace(a_tree(), writers={}), "b").outcomes == ()


def test_a_failed_parent_is_told_of_the_same_error_before_nearer_ones():
    shape = {"old": ("", 0), "p": ("", 0), "child": ("p", 0), "new": ("", 0)}
    errors = [("old", "k.cpp:3: no `x`"), ("p", "k.cpp:9: no `x`"), ("child", "no `y`"), ("new", "no `z`")]
    request = asked(a_tree(shape, errors), "p")
    assert request.negative_ids == ("old", "child", "new")
    assert names(request) == ["p", "old", "child", "new"]


def test_there_is_an_end_to_what_is_told():
    shape = {f"n{i}": (f"n{i - 1}" if i else "", 2.0 + i / 100) for i in range(30)}
    shape |= {f"f{i}": ("n29", 0) for i in range(40)}
    request = asked(a_tree(shape), "n29")
    assert len(request.outcomes) == outcomes.ANCESTORS_MAX + outcomes.SETBACKS_MAX


def test_a_models_long_rationale_is_cut():
    tree = a_tree()
    wordy = replace(tree.nodes["b"], move=replace(tree.nodes["b"].move, rationale="x" * 5000))
    tree = replace(tree, nodes={**tree.nodes, "b": wordy})
    assert len(asked(tree, "b").outcomes[0].move.rationale) == outcomes.RATIONALE_CHARS_MAX
