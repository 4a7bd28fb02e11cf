"""A short chaos run; ``make chaos`` is the long one."""

from __future__ import annotations

import asyncio

import pytest

from tests.chaos.faults import Kind, plan
from tests.chaos.play import Run, play
from tests.chaos.system import system
from tests.chaos.trial import Trial
from tests.chaos.wishes import wishes

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

SEED, SEARCHES, EVALUATIONS, WORKERS = 1, 4, 6, 2
WITHIN_S = 120.0
PAUSE_S = (0.1, 0.5)


def run(*kinds: Kind) -> Run:
    faults = plan(SEED, workers=WORKERS, kinds=kinds, pause_s=PAUSE_S)
    with system(WORKERS, SIMULATED_MEDIAN_S="0.5") as made:
        wanted = wishes(SEARCHES, EVALUATIONS, SEED)
        return asyncio.run(play(made, wanted, faults, within_s=WITHIN_S, settled=False))


def test_searches_survive_the_death_of_every_process_and_end_with_the_trees_they_would_have_had():
    disturbed, calm = run(Kind.KILL, Kind.WIPE), run()
    trial = Trial(seed=SEED, wishes=wishes(SEARCHES, EVALUATIONS, SEED), disturbed=disturbed, calm=calm)
    assert trial.problems == []
    assert {fault.fault.victim for fault in disturbed.injuries} >= {"search", "synthesizer", "kafka", "mongo", "redis"}
