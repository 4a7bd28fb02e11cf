"""Schedules between the real emitters: what languages share of one operator, and that it can be written there."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from shared import chips, operators
from shared.machine import processor
from synthesizer_svc.schedule import emit, plan
from synthesizer_svc.schedule.capture import capture
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.schedule.transfer import transfer

CHIPS = {"cpp": "cpu-x86_64", "triton": "nvidia-sm_90", "c-rvv": "riscv-rvv"}
SHARED = {"g0.division", "g0.rows", "g0.softmax_stats"}
"""What all of them decide about a softmax."""


@pytest.fixture(scope="module")
def softmax():
    operator = operators.load(Path(__file__).parents[3] / "examples" / "operators" / "riscv" / "softmax.py")
    return plan.build(capture(operator.source, seconds=120))


def machine(language):
    return chips.machine_of(chips.load(CHIPS[language]), processor().flags)


@pytest.mark.parametrize(("here", "there"), list(permutations(CHIPS, 2)))
def test_a_softmax_takes_what_languages_share_along_and_can_be_written_there(softmax, here, there):
    space = emit.space(here, softmax, machine(here), 1)
    # The last value of every decision, so that what is carried over is not what is default there anyway.
    found = Schedule(choices=tuple(sorted((decision.key, decision.values[-1]) for decision in space.decisions)))
    found = found.with_choice("g0.rows", 4)
    other = emit.space(there, softmax, machine(there), 1)
    moved = transfer(other, found)
    assert {key for key, _ in moved.carried} >= SHARED
    assert other.complete(moved.schedule) == moved.schedule
    assert emit.render(there, softmax, moved.schedule, machine(there), 1).source


def test_between_chips_of_one_language_everything_that_both_offer_is_carried_over(softmax):
    hopper = emit.space("triton", softmax, machine("triton"), 1)
    moved = transfer(hopper, hopper.default())
    assert (moved.schedule, moved.left) == (hopper.default(), ())
