"""A search for which nobody can write waits: nothing is burnt, nothing is lost, and it goes on where it stood."""

from __future__ import annotations

from dataclasses import replace

import pytest

from search_svc import limits, projection, replay
from shared import wire
from shared.events import (
    Budget,
    Context,
    ExpansionRequested,
    Memory,
    ModelBudget,
    SearchCancelled,
    SearchFinished,
    SearchPaused,
    SearchResumed,
    Usage,
)
from tests.builders import SECOND_NS, a_search, enveloped, expansion_failed, rejected
from tests.fakes.drive import Drive
from tests.fakes.landscape import Landscape, Moody


class DeadUntil(Landscape):
    """Nobody can write before ``revive`` is called."""

    dead = False

    def synthesize(self, request):
        if DeadUntil.dead:
            spent = Usage(input_tokens=100, output_tokens=20, requests=2, cost_micro=9)
            return [expansion_failed(request, "endpoint", "a: does not answer", pauses=True, usage=spent)]
        return super().synthesize(request)


@pytest.fixture
def drive():
    DeadUntil.dead = False
    return Drive(landscape=DeadUntil())


def paused(drive: Drive, **search) -> Drive:
    """A search that went on for a while and then paused."""
    drive.take(enveloped(a_search(evaluations=12, **search)))
    for _ in range(14):
        drive.take(drive.waiting.pop(0))
    DeadUntil.dead = True
    drive.finish()
    return drive


def resume(drive: Drive, *, at_ns: int = 0, dead: bool = False, **budget) -> None:
    DeadUntil.dead = dead
    event = SearchResumed(search_id="search-1", at_ns=at_ns, model=ModelBudget(**budget))
    drive.take(enveloped(event, cause_id=f"pause-{len(drive.entries)}"))


def commands(drive: Drive, kind: type) -> list:
    return [event for entry in drive.entries for c in entry.commands if isinstance(event := wire.unpack(c).event, kind)]


def test_it_finishes_what_is_running_and_then_says_that_it_waits(drive):
    tree = paused(drive).tree
    assert tree.paused
    assert not tree.running
    assert not tree.finished
    said = commands(drive, SearchPaused)
    assert said == [
        SearchPaused(search_id="search-1", code="endpoint", detail="a: does not answer", evaluations=tree.charged)
    ]
    assert all(node.label != "PENDING" for node in tree.nodes.values())


def test_a_pause_burns_neither_evaluations_nor_patience(drive):
    tree = paused(drive).tree
    assert tree.failed_expansions_row == 0
    assert tree.barren_row == 0
    assert not any(node.offspring.exhausted for node in tree.nodes.values())
    assert tree.charged == len(tree.verdicts) < 12


class Mute(Landscape):
    """A model is asked and never has an answer; nobody says that it is hopeless."""

    def synthesize(self, request):
        context = Context(memory=Memory.PARENT, asking="whole")
        return [replace(rejected(request, n, "deadline"), context=context) for n in range(request.count)]


def test_models_without_any_answer_halt_a_search_and_exhaust_nothing():
    drive = Drive(landscape=Mute())
    tree = drive.run(a_search(evaluations=12))
    assert tree.paused
    assert tree.halted[0] == "deadline"
    assert tree.charged == 0
    assert not tree.root.exhausted
    asked = len(commands(drive, ExpansionRequested))
    assert asked == limits.UNANSWERED_ROW_MAX + 1
    DeadUntil.dead = False
    drive.landscape = Landscape()
    resume(drive)
    assert drive.finish().reason == "evaluations"
    assert replay.verify(drive.entries).tree == drive.tree


def test_what_a_failed_expansion_cost_is_counted(drive):
    tree = paused(drive).tree
    failed = sum("endpoint" in expansion.codes for expansion in tree.expansions.values())
    assert failed > 0
    assert tree.spent == Usage(
        input_tokens=100 * failed, output_tokens=20 * failed, requests=2 * failed, cost_micro=9 * failed
    )


def test_resumed_it_goes_on_to_its_end_and_every_decision_replays(drive):
    before = paused(drive).tree
    resume(drive)
    tree = drive.finish()
    assert tree.finished
    assert tree.reason == "evaluations"
    assert tree.charged == 12
    assert list(tree.nodes)[: len(before.nodes)] == list(before.nodes)
    report = replay.verify(drive.entries)
    assert report.tree == replay.rebuild(drive.entries) == tree


def test_resumed_while_nothing_has_changed_it_pauses_again(drive):
    paused(drive)
    resume(drive, dead=True)
    tree = drive.finish()
    assert tree.paused
    assert len(commands(drive, SearchPaused)) == 2


def test_resuming_what_runs_changes_nothing_but_its_clock(drive):
    drive.take(enveloped(a_search(evaluations=12)))
    for _ in range(6):
        drive.take(drive.waiting.pop(0))
    asked = len(commands(drive, ExpansionRequested))
    resume(drive)
    assert len(commands(drive, ExpansionRequested)) == asked
    assert drive.finish().reason == "evaluations"


def test_the_time_of_a_pause_does_not_count(drive):
    tree = paused(drive, wall_ns=10**15).tree
    elapsed_ns = tree.elapsed_ns
    DeadUntil.dead = False
    event = SearchResumed(search_id="search-1", at_ns=tree.now_ns + 10**16)
    after = replay.advance(tree, enveloped(event), ())
    assert after.elapsed_ns == elapsed_ns


def test_a_raised_budget_is_asked_with_from_then_on(drive):
    paused(drive, budget=Budget(evaluations=12, model=ModelBudget(tokens=1_000, cost_micro=5)))
    resume(drive, tokens=2_000)
    drive.finish()
    budgets = dict.fromkeys(request.model_budget for request in commands(drive, ExpansionRequested))
    assert list(budgets) == [ModelBudget(tokens=1_000, cost_micro=5), ModelBudget(tokens=2_000, cost_micro=5)]
    assert replay.verify(drive.entries).tree == drive.tree


def test_a_paused_search_can_be_cancelled(drive):
    paused(drive)
    drive.take(enveloped(SearchCancelled(search_id="search-1", reason="enough")))
    assert drive.tree.outcome == "cancelled"
    assert len(commands(drive, SearchFinished)) == 1


def test_a_limit_that_is_reached_ends_it_although_nobody_can_write(drive):
    drive.take(enveloped(a_search(evaluations=4, expansions_in_flight=2)))
    while drive.tree.charged < 4:
        drive.take(drive.waiting.pop(0))
    DeadUntil.dead = True
    tree = drive.finish()
    assert tree.finished
    assert not commands(drive, SearchPaused)


def test_a_fork_of_a_paused_search_does_not_wait(drive):
    paused(drive)
    prefix, event = replay.fork(
        drive.entries, at_seq=len(drive.entries), search_id="fork", policy="beam", seed=2, at_ns=10**15
    )
    DeadUntil.dead = False
    forked = Drive(landscape=DeadUntil(), tree=replay.rebuild(prefix), entries=list(prefix))
    assert forked.tree.paused
    spent = forked.tree.spent
    forked.take(event)
    tree = forked.finish()
    assert tree.finished
    assert tree.spent == spent


def test_the_summary_says_why_it_waits(drive):
    summary = projection.summarize(paused(drive).tree)
    assert (summary.phase, summary.reason, summary.detail) == ("paused", "endpoint", "a: does not answer")
    assert summary.outcome == ""
    assert summary.spent.requests > 0


@pytest.mark.parametrize("seed", range(6))
def test_however_often_it_pauses_the_same_budget_of_evaluations_is_used(seed):
    drive = Drive(landscape=Moody(share=0.4), order_seed=seed)
    drive.run(a_search(evaluations=12, seed=seed))
    pauses = 0
    while not drive.tree.finished:
        pauses += 1
        drive.take(enveloped(SearchResumed(search_id="search-1"), cause_id=f"pause-{pauses}"))
        drive.finish()
    assert drive.tree.charged == 12
    assert replay.verify(drive.entries).tree == replace(drive.tree)
    assert drive.tree.now_ns < 10**6 * SECOND_NS
