"""Searches on chips without a clock: what costs are worth, what ends a search, and what may be said of its winner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from search_svc import index, invariants, messages, outcomes, projection
from search_svc.apply_evaluation import NOT_COMPARED
from shared.events import (
    PPM,
    Basis,
    EvaluationRequested,
    Purpose,
    SearchFinished,
    Status,
    Trust,
)
from tests.builders import a_failure, a_pass, a_search, an_estimate, measured
from tests.fakes.drive import Drive
from tests.fakes.landscape import Clockless
from tests.unit.search_svc.test_decide import Search, only
from tests.unit.search_svc.test_writers import Search as Written

COUNTED, MODELLED = Basis.COUNTED, Basis.MODELLED


def searched(*verdicts, **limits):
    """A search with these verdicts and nothing left to evaluate, and the last thing it asked for."""
    search = Search(evaluations=len(verdicts), **limits)
    for verdict in verdicts:
        search.candidate(verdict)
    return search, search.issued[-1]


def scores(search):
    return [node.score_ppm for node in search.tree.nodes.values()]


def test_the_first_draft_that_passes_scores_one_and_others_how_many_times_less_they_cost():
    search, _ = searched(a_failure(), an_estimate(3_000), an_estimate(1_000), an_estimate(6_000))
    assert scores(search) == [0, PPM, 3 * PPM, PPM // 2]
    reference = search.tree.reference
    assert (reference.basis, reference.cost, reference.unit) == (MODELLED, 3_000, "ns")
    assert search.tree.best.evaluation.estimate.cost == 1_000


def test_what_is_counted_ends_improved_when_it_costs_less_than_the_first_draft_and_is_trusted():
    search, final = searched(an_estimate(3_000, COUNTED), an_estimate(1_000, COUNTED))
    assert (final.purpose, final.candidate_id) == (Purpose.FINAL, search.tree.best_id)
    finished = only(SearchFinished, search.tell(measured(final, an_estimate(1_010, COUNTED))))
    assert (finished.outcome, finished.best_candidate_id) == ("improved", final.candidate_id)
    assert projection.final_ppm(search.tree, projection.winner(search.tree)) == 3_000 * PPM // 1_010


@pytest.mark.parametrize(
    "verdict",
    [
        an_estimate(3_001, COUNTED),
        an_estimate(1_000, COUNTED, trust=Trust.L2),
        an_estimate(1_000, COUNTED, unit="instructions"),
        an_estimate(1_000, MODELLED),
        a_pass(9_000_000),
        a_failure(Status.NONDETERMINISTIC),
    ],
    ids=["dearer", "too little trust", "another unit", "another basis", "timed", "not repeatable"],
)
def test_a_count_that_does_not_hold_is_no_improvement(verdict):
    search, final = searched(an_estimate(3_000, COUNTED), an_estimate(1_000, COUNTED))
    first_draft = only(EvaluationRequested, search.tell(measured(final, verdict)))
    assert first_draft.candidate_id == search.tree.reference.candidate_id
    finished = only(SearchFinished, search.tell(measured(first_draft, verdict)))
    assert (finished.outcome, finished.best_candidate_id) == ("no_improvement", "")


def test_a_first_draft_than_which_nothing_was_counted_to_cost_less_is_what_the_search_ends_with():
    search, final = searched(an_estimate(1_000, COUNTED), an_estimate(2_000, COUNTED), an_estimate(2_000, COUNTED))
    assert final.candidate_id == search.tree.reference.candidate_id
    finished = only(SearchFinished, search.tell(measured(final, an_estimate(1_000, COUNTED))))
    assert (finished.outcome, finished.best_candidate_id) == ("estimated", final.candidate_id)


def test_a_model_never_improves_it_ends_estimated_with_the_best_that_is_right_again():
    search, final = searched(an_estimate(3_000), an_estimate(1_000), an_estimate(2_000))
    wrong = only(EvaluationRequested, search.tell(measured(final, a_failure())))
    finished = only(SearchFinished, search.tell(measured(wrong, an_estimate(2_000, trust=Trust.L4))))
    assert (finished.outcome, finished.best_candidate_id) == ("estimated", wrong.candidate_id)
    assert finished.final_evaluation_id == wrong.evaluation_id
    assert search.tree.nodes[wrong.candidate_id].score_ppm == 1_500_000


def test_a_first_draft_that_no_model_prefers_another_to_is_an_estimate_too():
    search, final = searched(an_estimate(1_000), an_estimate(2_000))
    assert final.candidate_id == search.tree.reference.candidate_id
    assert only(SearchFinished, search.tell(measured(final, an_estimate(1_000)))).outcome == "estimated"


def test_a_chip_that_tells_nothing_of_cost_improves_nothing():
    right = replace(an_estimate(1), estimate=None)
    search, last = searched(right, right)
    assert (last.outcome, last.best_candidate_id) == ("no_improvement", "")
    assert search.tree.reference is None


@pytest.mark.parametrize(
    ("first", "other", "why"),
    [
        (an_estimate(10, COUNTED), an_estimate(5, MODELLED), "modelled in ns, the first draft counted in ns"),
        (an_estimate(10), an_estimate(5, unit="cycles"), "modelled in cycles, the first draft modelled in ns"),
        (an_estimate(10), a_pass(5_000_000), "timed in a search whose kernels are modelled"),
        (a_pass(1_100_000), an_estimate(5), "estimated in a search whose kernels are timed"),
    ],
    ids=["basis", "unit", "timed later", "timed before"],
)
def test_what_cannot_be_compared_scores_nothing_and_says_why(first, other, why):
    search, _ = searched(first, other, a_failure())
    assert scores(search)[1:] == [0, 0]
    told = [entry.value for entry in list(search.tree.nodes.values())[1].evaluation.evidence]
    assert told == [why]
    assert list(search.tree.nodes.values())[1].evaluation.evidence[0].name == NOT_COMPARED


def test_a_target_is_how_many_times_less_than_the_first_draft_a_kernel_must_cost():
    search = Search(evaluations=20, target_speedup_ppm=2_000_000)
    search.candidate(an_estimate(1_000, COUNTED))
    search.candidate(an_estimate(501, COUNTED))
    assert search.tree.limit == ""
    search.candidate(an_estimate(500, COUNTED))
    assert search.tree.limit == "target_speedup"


def test_writers_gain_by_estimates_and_a_first_draft_gains_nothing():
    search = Written()
    first = search.candidate(an_estimate(3_000), asking="moves")
    search.candidate(an_estimate(1_000), first, asking="whole")
    search.candidate(an_estimate(3_000), first, asking="whole")
    records = search.records()
    assert records["moves"].gain_micro == 0
    assert records["whole"].gains_milli == 937
    assert records["whole"].gain_micro == 1_000_000 * 15 // 16  # ln 3 is capped at 1


def test_those_who_write_next_are_told_what_a_ratio_rests_on():
    search = Written()
    first = search.candidate(an_estimate(3_000, COUNTED))
    second = search.candidate(an_estimate(1_000, COUNTED), first)
    told = outcomes.outcome(search.tree, search.tree.nodes[second])
    assert (told.ratio_ppm, told.gain_ppm, told.basis) == (3 * PPM, 3 * PPM, "counted")
    timed = Written()
    passed = timed.candidate(a_pass())
    assert outcomes.outcome(timed.tree, timed.tree.nodes[passed]).basis == ""


def test_a_server_says_what_the_numbers_of_a_search_rest_on():
    tree = Drive(landscape=Clockless()).run(a_search(search_id="s", evaluations=8))
    shown = messages.search(index.row(tree, 3))
    won = tree.nodes[tree.winner_id]
    assert (shown.outcome, shown.basis, shown.cost_unit) == ("improved", "counted", "ns")
    assert (shown.reference_cost, shown.best_cost) == (tree.reference.cost, won.final.estimate.cost)
    assert shown.winner_speedup_ppm == tree.reference.cost * PPM // won.final.estimate.cost
    assert (shown.winner_low_ppm, shown.winner_high_ppm) == (0, 0)
    assert messages.node(won).estimate.cost == won.evaluation.estimate.cost
    timed = Drive().run(a_search(search_id="t", evaluations=8))
    assert messages.search(index.row(timed, 3)).basis == ""
    assert not messages.node(timed.best).HasField("estimate")


def test_an_improvement_by_a_model_would_break_the_tree():
    tree = Drive(landscape=Clockless(basis=MODELLED)).run(a_search(evaluations=6))
    assert tree.outcome == "estimated"
    assert not list(invariants.violations(tree))
    assert list(invariants.violations(replace(tree, outcome="improved"))) == ["improved by a model"]
