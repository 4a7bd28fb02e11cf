"""A short chaos run; ``make chaos`` is the long one."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos.embedded import embedded
from tests.chaos.faults import NAMES, Kind, plan
from tests.chaos.play import Run, play
from tests.chaos.system import system
from tests.chaos.trial import Trial
from tests.chaos.wishes import wishes

pytestmark = [pytest.mark.serial, pytest.mark.timeout(420)]

SEED, SEARCHES, EVALUATIONS, WORKERS = 1, 4, 6, 2
WITHIN_S = 120.0
PAUSE_S = (0.1, 0.5)


WISHES = wishes(SEARCHES, EVALUATIONS, SEED, operators=("softmax",))
ENVIRONMENT = {"SIMULATED_MEDIAN_S": "0.5"}


def disturbed() -> Run:
    faults = plan(SEED, workers=WORKERS, kinds=(Kind.KILL, Kind.WIPE), pause_s=PAUSE_S)
    with system(WORKERS, **ENVIRONMENT) as made:
        return asyncio.run(play(made, WISHES, faults, within_s=WITHIN_S, settled=False))


def undisturbed() -> Run:
    with embedded(**ENVIRONMENT, EVALUATOR_SLOTS="4") as made:
        return asyncio.run(play(made, WISHES, (), within_s=WITHIN_S))


def test_searches_survive_the_death_of_every_process_and_end_as_they_do_undisturbed_in_one_process():
    trial = Trial(seed=SEED, wishes=WISHES, disturbed=disturbed(), calm=undisturbed())
    assert trial.problems == []
    assert {injury.fault.victim for injury in trial.disturbed.injuries} >= {*NAMES, "kafka", "mongo", "redis"}
