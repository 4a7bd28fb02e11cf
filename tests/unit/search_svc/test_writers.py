"""What each way of writing has brought: settled from the journal alone, and carried by requests."""

from __future__ import annotations

from dataclasses import replace

from search_svc import apply, requests
from search_svc.policies.policy import Ask
from shared.events import Context, Entry, Memory, Move, Purpose, StageTimes, Status, Usage
from shared.writers import INSTEAD_OF
from tests.builders import a_failure, a_pass, a_search, measured, produced, rejected

FREE, MOVE = Usage(), Move(name="m")
ASK = Ask(parent_ids=(), memory=Memory.PARENT, reasons=())


class Search:
    """A tree, one fact at a time."""

    def __init__(self) -> None:
        self.tree, self.asked = apply.start(a_search(baseline="compiled")), 0

    def request(self, *parent_ids):
        self.asked += 1
        request = requests.expansion(self.tree, replace(ASK, parent_ids=parent_ids), f"e{self.asked}", 1)
        self.tree = apply.apply(self.tree, request)
        return request

    def candidate(self, evaluation, *parent_ids, asking="", usage=FREE, move=MOVE):
        request = self.request(*parent_ids)
        context = Context(memory=Memory.PARENT, asking=asking)
        fact = replace(produced(request, 0, f"k{self.asked}"), context=context, usage=usage, move=move)
        self.tree = apply.apply(self.tree, fact)
        asked = requests.evaluation(self.tree, self.tree.nodes[fact.candidate_id], Purpose.SEARCH, 1)
        self.tree = apply.apply(self.tree, asked)
        self.tree = apply.apply(self.tree, measured(asked, evaluation))
        return fact.candidate_id

    def turned_down(self, asking, usage=FREE):
        fact = replace(rejected(self.request(), 0, "no_block"), usage=usage)
        self.tree = apply.apply(self.tree, replace(fact, context=Context(memory=Memory.PARENT, asking=asking)))

    def records(self):
        return {record.writer: record for record in self.request().writers}


def test_a_search_without_a_model_asks_as_it_always_did():
    search = Search()
    search.candidate(a_pass(2_000_000))
    assert search.request().writers == ()


def test_a_gain_counts_when_the_interval_is_beyond_what_the_candidate_started_from():
    search = Search()
    first = search.candidate(a_pass(1_500_000))
    search.candidate(a_pass(1_520_000), first, asking="moves")  # 1.47 to 1.57: not proven
    search.candidate(a_pass(3_000_000), first, asking="whole")
    records = search.records()
    assert (records["schedule"].gains_milli, records["schedule"].gain_micro) == (1000, 405_465)
    assert (records["moves"].attempts_milli, records["moves"].gains_milli) == (1000, 0)
    assert records["whole"].gain_micro == 693_147


def test_what_failed_and_what_was_rejected_are_attempts_with_their_cost():
    search = Search()
    search.turned_down("whole", Usage(latency_ns=5, cost_micro=70))
    failed = replace(a_failure(Status.COMPILE_ERROR), stages=StageTimes(build_ns=11, wait_ns=500))
    search.candidate(failed, asking="whole", usage=Usage(latency_ns=3, cost_micro=7))
    record = search.records()["whole"]
    assert (record.attempts_milli, record.gains_milli) == (1937, 0)
    assert (record.time_ns, record.cost_micro) == (4 + 3 + 11, 65 + 7)


def test_a_price_that_is_unknown_once_stays_unknown():
    search = Search()
    for cost_micro in (70, -1, *[70] * 40):
        search.turned_down("whole", Usage(cost_micro=cost_micro))
    search.turned_down("moves", Usage(cost_micro=5))
    assert (search.records()["whole"].cost_micro, search.records()["moves"].cost_micro) == (-1, 5)


def test_what_a_worker_could_not_measure_settles_nothing():
    search = Search()
    search.turned_down("moves")
    search.candidate(a_failure(Status.CANCELLED), asking="whole")
    assert set(search.records()) == {"moves"}


def test_a_kernel_written_in_a_models_place_is_the_schedules_and_the_conversation_the_models():
    search = Search()
    instead = Move(name="m", parameters=(Entry(name=INSTEAD_OF, value="budget: used up"),))
    search.candidate(a_pass(2_000_000), asking="moves", usage=Usage(cost_micro=9), move=instead)
    records = search.records()
    assert (records["moves"].gains_milli, records["moves"].cost_micro) == (0, 9)
    assert (records["schedule"].gains_milli, records["schedule"].cost_micro) == (1000, 0)


def test_old_attempts_fade():
    search = Search()
    for _ in range(200):
        search.turned_down("whole", Usage(cost_micro=100))
    record = search.records()["whole"]
    assert 15_000 < record.attempts_milli <= 16_000
    assert 1_400 < record.cost_micro <= 1_600


def test_a_draft_is_held_against_the_best_so_far():
    search = Search()
    search.candidate(a_pass(3_000_000))
    search.candidate(a_pass(2_000_000), asking="whole")
    assert search.records()["whole"].gains_milli == 0


def test_the_repair_of_a_kernel_without_a_time_is_held_against_the_baseline():
    search = Search()
    broken = search.candidate(a_failure())
    search.candidate(a_pass(2_000_000), broken, asking="whole")
    assert search.records()["whole"].gain_micro == 693_147


def test_moves_that_there_were_none_of_are_no_attempt_of_a_model_that_nobody_asked():
    search = Search()
    search.candidate(a_pass(1_500_000), asking="moves", usage=Usage(requests=1, input_tokens=9))
    before = search.records()["moves"]
    fact = rejected(search.request(), 0, "exhausted")
    search.tree = apply.apply(search.tree, replace(fact, context=Context(memory=Memory.PARENT, asking="moves")))
    instead = Move(name="m", parameters=(Entry(name=INSTEAD_OF, value="exhausted: no move left"),))
    search.candidate(a_pass(1_600_000), asking="moves", usage=Usage(latency_ns=5), move=instead)
    records = search.records()
    assert records["moves"] == before
    assert records["schedule"].attempts_milli == 1000
