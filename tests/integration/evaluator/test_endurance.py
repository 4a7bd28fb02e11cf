"""Sixty evaluations in a row, a third hostile, leave nothing behind. ``make endurance`` makes a thousand."""

from __future__ import annotations

import asyncio

import pytest

from shared.events import Status
from tests.bench.census import MEMORY
from tests.bench.endurance import HONEST, HOSTILE, endure, plan
from tests.bench.endurance_report import page

EVALUATIONS, SEED = 60, 3
GROWN_KIB_MAX = 24 << 10
"""What Python's and malloc's arenas may settle at in the first evaluations."""


@pytest.fixture(scope="module")
def found():
    return asyncio.run(endure(EVALUATIONS, SEED))


@pytest.mark.serial
@pytest.mark.timeout(600)
def test_nothing_is_left_behind_and_nothing_grows(found):
    grown = found.grown()
    assert grown.pop(MEMORY, 0) <= GROWN_KIB_MAX
    assert grown == {}


@pytest.mark.serial
@pytest.mark.timeout(600)
def test_the_right_kernel_passes_between_hostile_ones_and_none_of_those_does(found):
    right = {one.status for one in found.done if one.kernel == "right"}
    assert right == {Status.PASSED}
    hostile = {one.status for one in found.done if one.hostile}
    assert not hostile & {Status.PASSED, Status.INFRASTRUCTURE, Status.NOISY}


@pytest.mark.serial
@pytest.mark.timeout(600)
def test_the_report_has_every_count_and_part(found):
    text = page(found, "the command", 0.3)
    assert all(f"| {name} |" in text for name in found.samples[0].counts)
    assert "| timing, less its calls |" in text


def test_the_same_seed_gives_the_same_thousand_a_third_of_them_hostile():
    made = plan(1000, 1)
    assert made == plan(1000, 1) != plan(1000, 2)
    assert 0.29 < sum(hostile for _, hostile, _ in made) / 1000 < 0.37
    assert {kernel for kernel, _, _ in made} == {*HONEST, *HOSTILE}
