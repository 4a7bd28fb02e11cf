"""Tables of event -> commands: what the search does about each fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from search_svc import limits
from search_svc.apply_synthesis import BAD_TEXTS_MAX, BARREN_MAX
from search_svc.decide import decide
from search_svc.invariants import validate
from shared import ids
from shared.errors import Poison
from shared.events import (
    EvaluationRequested,
    ExpansionRequested,
    Memory,
    NodePruned,
    Purpose,
    SearchCancelled,
    SearchFinished,
    Status,
    Trust,
)
from tests.builders import (
    SEARCH_ID,
    SECOND_NS,
    a_failure,
    a_pass,
    a_search,
    enveloped,
    expansion_failed,
    measured,
    produced,
    rejected,
)


class Search:
    """A search by hand: ``tell`` facts, look at the events it issues."""

    def __init__(self, **search):
        self.tree = None
        self.issued = []
        self.count = 0
        self.tell(a_search(**search))

    def tell(self, event):
        self.count += 1
        envelope = enveloped(event, cause_id=f"cause-{self.count}")
        before = self.tree
        self.tree, commands = decide(before, envelope)
        assert decide(before, envelope) == (self.tree, commands)
        validate(self.tree)
        now = [command.event for command in commands]
        self.issued.extend(now)
        return now

    def of(self, kind):
        return [event for event in self.issued if isinstance(event, kind)]

    def candidate(self, evaluation=None, *, text=None, at_ns=0):
        """Answer the next open expansion index with a new kernel and, when given, its verdict."""
        expansion = next(e for e in self.tree.expansions.values() if e.open)
        text = text or f"kernel-{len(self.tree.nodes)}"
        issued = self.tell(produced(expansion.request, expansion.open[0], text, at_ns))
        request = next(e for e in issued if isinstance(e, EvaluationRequested))
        return self.tell(measured(request, evaluation, at_ns)) if evaluation else request


def only(kind, events):
    (event,) = [event for event in events if isinstance(event, kind)]
    return event


def test_a_search_starts_with_drafts_that_fill_the_places_in_flight():
    search = Search(candidates_per_expansion=2, expansions_in_flight=3)
    assert [(type(e), e.count, e.parent_ids, e.memory) for e in search.issued] == [
        (ExpansionRequested, 2, (), Memory.CLEAN)
    ] * 3
    assert len({e.expansion_id for e in search.issued}) == 3
    assert len({e.seed for e in search.issued}) == 3


def test_drafts_never_ask_for_more_candidates_than_the_budget_allows():
    search = Search(evaluations=3, candidates_per_expansion=2, expansions_in_flight=4)
    assert [e.count for e in search.issued] == [2, 1]


def test_a_produced_candidate_is_sent_to_evaluation():
    search = Search()
    request = search.candidate()
    assert (request.purpose, request.attempt, request.threads) == (Purpose.SEARCH, 1, 1)
    assert search.tree.charged == 1


def test_command_ids_derive_from_the_cause():
    cause = enveloped(a_search(), cause_id="c")
    _, commands = decide(None, cause)
    assert [c.id for c in commands] == [ids.derive(cause.id, "ExpansionRequested", n) for n in range(2)]
    assert {c.causation_id for c in commands} == {cause.id}
    assert {c.correlation_id for c in commands} == {SEARCH_ID}


def test_a_kernel_the_search_has_already_is_counted_and_not_evaluated_again():
    search = Search()
    search.candidate(text="same")
    expansion = next(e for e in search.tree.expansions.values() if e.open)
    issued = search.tell(produced(expansion.request, expansion.open[0], "same"))
    assert [e for e in issued if isinstance(e, EvaluationRequested)] == []
    assert (search.tree.duplicates, search.tree.charged) == (1, 1)


def test_a_second_answer_to_one_index_is_ignored():
    search = Search()
    first = search.issued[0]
    search.tell(produced(first, 0, "one"))
    assert search.tell(produced(first, 0, "two")) == []
    assert search.tree.ignored == 1


def test_a_verdict_frees_places_for_the_next_expansion():
    search = Search(expansions_in_flight=1)
    assert [e for e in search.candidate(a_pass()) if isinstance(e, ExpansionRequested)] == []
    request = only(ExpansionRequested, search.candidate(a_pass(1_200_000)))
    assert request.parent_ids == (search.tree.best_id,)
    assert request.parent_evaluations[0].status is Status.PASSED
    assert len(request.known_kernel_ids) == 2
    assert {entry.name for entry in request.reasons} >= {"score_ppm", "position"}


def test_failed_siblings_are_handed_on_as_negative_memory():
    search = Search(expansions_in_flight=1)
    search.candidate(a_failure())
    request = only(ExpansionRequested, search.candidate(a_pass()))
    assert request.memory is Memory.PARENT
    assert [kernel.source_hash for kernel in request.negative] == ["kernel-0"]


def test_a_node_with_children_is_expanded_with_its_children_in_view():
    search = Search(expansions_in_flight=1, evaluations=30, parameters={"patience_cost": 0})
    for ratio in (1_500_000, 1_100_000):
        search.candidate(a_pass(ratio))
    best = search.tree.best_id
    search.candidate(a_pass(1_300_000))
    request = only(ExpansionRequested, search.candidate(a_pass(1_400_000)))
    assert (request.parent_ids, request.memory) == ((best,), Memory.PARENT_AND_SIBLINGS)
    assert [kernel.source_hash for kernel in request.siblings] == ["kernel-3", "kernel-2"]


@pytest.mark.parametrize("status", [Status.NOISY, Status.INFRASTRUCTURE])
def test_a_measurement_that_did_not_count_is_asked_for_again_and_not_charged(status):
    search = Search()
    request = search.candidate()
    for attempt in range(2, limits.ATTEMPTS_MAX + 1):
        request = only(EvaluationRequested, search.tell(measured(request, a_failure(status))))
        assert (request.attempt, search.tree.charged, search.tree.since_best) == (attempt, 1, 0)
    assert search.tell(measured(request, a_failure(status))) == []
    assert not search.tree.nodes[request.candidate_id].failed
    assert (search.tree.charged, search.tree.since_best, search.tree.verdicts) == (0, 0, ())


@pytest.mark.parametrize("status", [Status.NOISY, Status.INFRASTRUCTURE])
def test_what_could_not_be_measured_costs_no_evaluation(status):
    search = Search(evaluations=3, expansions_in_flight=1, candidates_per_expansion=1)
    _given_up(search, status)
    for _ in range(3):
        assert not search.tree.limit
        search.candidate(a_pass())
    assert (search.tree.limit, search.tree.charged, len(search.tree.nodes)) == ("evaluations", 3, 4)


def test_a_machine_too_noisy_to_measure_on_ends_the_search():
    search = Search(expansions_in_flight=1, candidates_per_expansion=1)
    search.candidate(a_pass())
    for _ in range(limits.UNMEASURED_ROW_MAX):
        assert not search.tree.limit
        _given_up(search, Status.NOISY)
    assert search.tree.limit == "noise"
    finished = only(SearchFinished, search.tell(measured(search.issued[-1], a_pass())))
    assert (finished.outcome, finished.reason, finished.evaluations) == ("improved", "noise", 1)


def _given_up(search, status):
    """A candidate that every attempt to measure fails for."""
    request = search.candidate()
    for _ in range(limits.ATTEMPTS_MAX):
        issued = search.tell(measured(request, a_failure(status)))
        request = next((e for e in issued if isinstance(e, EvaluationRequested)), request)


def test_an_answer_to_an_earlier_attempt_is_ignored():
    search = Search()
    first = search.candidate()
    search.tell(measured(first, a_failure(Status.NOISY)))
    assert search.tell(measured(first, a_pass())) == []
    assert search.tree.ignored == 1


def test_an_unsupported_operator_ends_the_search_with_the_reason():
    search = Search()
    finished = only(SearchFinished, search.tell(expansion_failed(search.issued[0], "unsupported_operator", "aten.foo")))
    assert (finished.outcome, finished.reason) == ("failed", "unsupported_operator")
    assert search.tree.synthesis_failure == ("unsupported_operator", "aten.foo")


def test_a_synthesizer_that_keeps_failing_ends_the_search():
    search = Search(expansions_in_flight=1)
    while not search.tree.finished:
        search.tell(expansion_failed(search.of(ExpansionRequested)[-1], "endpoint"))
    assert len(search.of(ExpansionRequested)) == limits.FAILED_EXPANSIONS_ROW_MAX
    assert only(SearchFinished, search.issued).reason == "synthesis_failed"


def test_an_exhausted_space_ends_the_search():
    search = Search(expansions_in_flight=1)
    finished = [search.tell(rejected(search.issued[0], index)) for index in range(2)][-1]
    assert (finished[0].outcome, finished[0].reason) == ("failed", "space_exhausted")


def test_an_exhausted_node_is_pruned_and_the_winner_still_confirmed():
    search = Search(expansions_in_flight=1)
    search.candidate(a_pass())
    search.tell(rejected(search.issued[0], 1))
    expansion = search.of(ExpansionRequested)[-1]
    issued = [search.tell(rejected(expansion, index)) for index in range(2)][-1]
    assert only(NodePruned, issued).rule == "exhausted"
    final = only(EvaluationRequested, issued)
    assert final.purpose is Purpose.FINAL
    finished = only(SearchFinished, search.tell(measured(final, a_pass())))
    assert (finished.outcome, finished.reason) == ("improved", "space_exhausted")


def test_texts_that_are_no_kernels_say_little_of_what_is_left_to_try():
    search = Search(expansions_in_flight=1, candidates_per_expansion=1)
    for _ in range(BARREN_MAX):
        search.tell(rejected(search.of(ExpansionRequested)[-1], 0, "truncated"))
    assert not search.tree.root.exhausted
    search.candidate(a_pass())
    assert search.tree.root.bad_texts == 0


def test_a_writer_that_never_writes_a_kernel_comes_to_an_end():
    search = Search(expansions_in_flight=1, candidates_per_expansion=1)
    for _ in range(BAD_TEXTS_MAX):
        search.tell(rejected(search.of(ExpansionRequested)[-1], 0, "truncated"))
    assert search.tree.root.exhausted
    assert search.tree.limit == "space_exhausted"


def test_kernels_that_are_known_already_exhaust_a_node():
    search = Search(expansions_in_flight=1, candidates_per_expansion=1)
    for _ in range(BARREN_MAX):
        search.tell(rejected(search.of(ExpansionRequested)[-1], 0, "duplicate"))
    assert search.tree.root.exhausted


@pytest.mark.parametrize(
    ("budget", "verdicts", "reason"),
    [
        ({"evaluations": 2}, [a_pass(), a_pass()], "evaluations"),
        ({"stall": 2}, [a_pass(2_000_000), a_pass(), a_failure()], "stall"),
        ({"target_speedup_ppm": 2_000_000}, [a_pass(), a_pass(2_000_000)], "target_speedup"),
        (
            {"sol_fraction_ppm": 800_000},
            [a_pass(fraction_ppm=700_000), a_pass(1_600_000, fraction_ppm=810_000)],
            "sol_fraction",
        ),
        ({"wall_ns": 2 * SECOND_NS}, [a_pass(), a_pass()], "wall_clock"),
    ],
)
def test_each_limit_ends_the_search_and_is_recorded(budget, verdicts, reason):
    search = Search(expansions_in_flight=1, candidates_per_expansion=1, **budget)
    for seconds, verdict in enumerate(verdicts, start=1):
        assert not search.tree.limit
        search.candidate(verdict, at_ns=seconds * SECOND_NS)
    assert search.tree.limit == reason
    final = search.of(EvaluationRequested)[-1]
    assert final.purpose is Purpose.FINAL
    finished = only(SearchFinished, search.tell(measured(final, a_pass())))
    assert (finished.outcome, finished.reason, finished.evaluations) == ("improved", reason, len(verdicts))


def test_the_final_stage_waits_for_verdicts_in_flight():
    search = Search(evaluations=2, expansions_in_flight=1)
    first, second = search.candidate(), search.candidate()
    assert search.tell(measured(first, a_pass())) == []
    assert (
        only(EvaluationRequested, search.tell(measured(second, a_pass(2_000_000)))).candidate_id == second.candidate_id
    )


def test_a_candidate_that_arrives_after_the_limit_is_kept_and_not_evaluated():
    search = Search(target_speedup_ppm=1_200_000)
    search.candidate(a_pass())
    open_expansion = next(e for e in search.tree.expansions.values() if e.open)
    assert search.tell(produced(open_expansion.request, open_expansion.open[0], "late")) == []
    assert list(search.tree.nodes.values())[-1].label == "SKIPPED"


def _at_the_final_stage(*verdicts):
    search = Search(evaluations=len(verdicts), expansions_in_flight=1, candidates_per_expansion=1)
    for verdict in verdicts:
        search.candidate(verdict)
    return search, search.issued[-1]


def test_the_winner_is_announced_with_its_final_measurement():
    search, final = _at_the_final_stage(a_pass(1_300_000), a_pass(1_700_000))
    finished = only(SearchFinished, search.tell(measured(final, a_pass(1_600_000))))
    assert (finished.best_candidate_id, finished.final_evaluation_id) == (final.candidate_id, final.evaluation_id)
    assert search.tree.nodes[search.tree.winner_id].final.speedup().ratio_ppm == 1_600_000


@pytest.mark.parametrize(
    "verdict",
    [
        a_pass(1_010_000),
        a_pass(1_600_000, trust=Trust.L2),
        a_failure(Status.NONDETERMINISTIC),
    ],
    ids=["interval holds 1", "too little trust", "not repeatable"],
)
def test_a_would_be_winner_that_does_not_hold_gives_way_to_the_next_best(verdict):
    search, final = _at_the_final_stage(a_pass(1_300_000), a_pass(1_700_000))
    second = only(EvaluationRequested, search.tell(measured(final, verdict)))
    assert (second.purpose, second.candidate_id) != (final.purpose, final.candidate_id)
    finished = only(SearchFinished, search.tell(measured(second, a_pass(1_250_000))))
    assert (finished.outcome, finished.best_candidate_id) == ("improved", second.candidate_id)


def test_no_more_than_the_named_number_of_winners_are_tried():
    search, request = _at_the_final_stage(*(a_pass(1_300_000 + n) for n in range(5)))
    for _ in range(limits.FINAL_TRIES_MAX - 1):
        request = only(EvaluationRequested, search.tell(measured(request, a_pass(1_000_000))))
    finished = only(SearchFinished, search.tell(measured(request, a_pass(1_000_000))))
    assert (finished.outcome, finished.best_candidate_id) == ("no_improvement", "")


def test_a_noisy_final_is_measured_again_before_it_counts():
    search, final = _at_the_final_stage(a_pass())
    again = only(EvaluationRequested, search.tell(measured(final, a_failure(Status.NOISY))))
    assert (again.purpose, again.candidate_id, again.attempt) == (Purpose.FINAL, final.candidate_id, 2)
    assert only(SearchFinished, search.tell(measured(again, a_pass()))).outcome == "improved"


def test_passing_without_a_proven_gain_is_no_improvement():
    _, last = _at_the_final_stage(a_pass(1_020_000), a_failure())
    assert (last.outcome, last.reason) == ("no_improvement", "evaluations")


def test_a_search_without_any_passed_candidate_failed():
    _, last = _at_the_final_stage(a_failure(), a_failure(Status.COMPILE_ERROR))
    assert (last.outcome, last.best_candidate_id) == ("failed", "")


def test_evaluators_that_are_down_end_the_search():
    search = Search(evaluations=50, expansions_in_flight=1, candidates_per_expansion=1)
    while not search.tree.finished:
        _given_up(search, Status.INFRASTRUCTURE)
    assert (search.tree.outcome, search.tree.reason) == ("failed", "infrastructure")
    assert (len(search.tree.nodes), search.tree.charged) == (limits.INFRASTRUCTURE_ROW_MAX, 0)


def test_a_command_belongs_to_the_trace_of_what_caused_it():
    cause = replace(enveloped(a_search()), traceparent="00-1-2-01")
    _, commands = decide(None, cause)
    assert {command.traceparent for command in commands} == {"00-1-2-01"}


def test_cancelling_ends_the_search_at_once():
    search = Search()
    request = search.candidate()
    finished = only(SearchFinished, search.tell(SearchCancelled(search_id=SEARCH_ID, reason="user")))
    assert (finished.outcome, finished.reason) == ("cancelled", "cancelled")
    assert search.tell(measured(request, a_pass())) == []


def test_results_after_the_finish_are_recorded_and_decide_nothing():
    search = Search()
    request = search.candidate()
    search.tell(SearchCancelled(search_id=SEARCH_ID, reason="user"))
    search.tell(measured(request, a_pass()))
    assert search.tree.nodes[request.candidate_id].passed


@pytest.mark.parametrize(("baseline", "ratio"), [("best", 1_500_000), ("compiled", 1_500_000), ("eager", 1_875_000)])
def test_the_score_divides_by_the_baseline_that_the_search_asks_for(baseline, ratio):
    search = Search(baseline=baseline)
    search.candidate(a_pass(1_500_000))
    assert search.tree.best.score_ppm == ratio


def test_a_failure_is_repaired_before_it_is_given_up():
    search = Search(expansions_in_flight=1, candidates_per_expansion=1, evaluations=30)
    search.candidate(a_failure())
    repair = search.of(ExpansionRequested)[-1]
    assert repair.parent_ids == (next(iter(search.tree.nodes)),)
    assert [entry.name for entry in repair.reasons] == ["repair", "repairs"]
    while not search.tree.finished:
        search.candidate(a_failure())
    assert {e.rule for e in search.of(NodePruned)} <= {"unrepaired", "dead_branch"}
    assert search.tree.outcome == "failed"


def test_a_fact_of_a_search_that_never_started_is_poison():
    with pytest.raises(Poison, match="never started"):
        decide(None, enveloped(SearchCancelled(search_id="other", reason="")))


def test_a_second_submission_changes_nothing():
    search = Search()
    before = search.tree
    assert search.tell(a_search()) == []
    assert search.tree == replace(before, ignored=1)
