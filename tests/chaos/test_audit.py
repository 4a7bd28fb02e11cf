"""The audit of a chaos run sees what was lost or doubled, and its plan leaves nobody out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from search_svc import recompute, replay
from shared import kelog
from shared.events import EvaluationCompleted
from tests.chaos.audit import audit
from tests.chaos.faults import NAMES, Kind, evaluator, plan
from tests.replay.golden_logs import path_of


@pytest.fixture(scope="module")
def facts():
    return list(replay.inputs(kelog.read(path_of("greedy")).entries))


def problems(facts, from_bus=None):
    """Of a search that took in ``facts``, and of which the bus still has the facts ``from_bus``."""
    entries = recompute.journal(facts, ()).entries
    other = entries if from_bus is None else recompute.journal(from_bus, ()).entries
    return audit("s", entries, other).problems


def last_verdict(facts):
    return next(fact for fact in reversed(facts) if isinstance(fact.event, EvaluationCompleted))


def test_nothing_is_wrong_with_a_whole_log(facts):
    assert problems(facts) == ()


def test_a_lost_evaluation_is_found(facts):
    lost = last_verdict(facts)
    found = problems([fact for fact in facts if fact is not lost])
    assert "has not ended" in found
    assert f"asked and never answered: {lost.event.evaluation_id}" in found


def test_an_evaluation_that_was_recorded_twice_is_found(facts):
    again = replace(last_verdict(facts), id="again")
    assert problems([*facts, again]) == (f"journalled more than once: {again.event.evaluation_id}",)


def test_a_bus_that_tells_another_story_is_found(facts):
    (found,) = problems(facts, facts[:-1])
    assert found.startswith("the bus gives another log")


def test_a_log_that_was_altered_is_found(facts):
    entries = recompute.journal(facts, ()).entries
    altered = (*entries[:3], replace(entries[3], digest="0" * len(entries[3].digest)), *entries[4:])
    (found,) = audit("s", altered, altered).problems
    assert "altered after it was written" in found


def test_every_process_is_killed_at_moments_that_only_the_seed_decides():
    faults = plan(7, workers=3)
    killed = {fault.victim for fault in faults if fault.kind is Kind.KILL}
    assert killed >= {*NAMES, "kafka", "mongo", "redis"}
    assert killed & {evaluator(number) for number in (1, 2, 3)}
    assert {fault.kind for fault in faults} == set(Kind)
    assert faults == plan(7, workers=3) != plan(8, workers=3)
