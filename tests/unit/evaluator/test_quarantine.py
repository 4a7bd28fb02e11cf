"""A worker that misses a known cheat takes no work, says so, tries again, and stays out when that does not help."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from evaluator_svc.canary import Finding
from evaluator_svc.observer import Happening
from evaluator_svc.on_demand import Asked, OnDemand
from evaluator_svc.pool import Unsound
from evaluator_svc.quarantine import Quarantine, Standing
from evaluator_svc.settings import CanaryLimits
from shared import topics, wire
from shared.errors import Unavailable
from shared.events import CapacityAnnounced, Evaluation, Status, WorkerState
from tests.aio import on_loop, until
from tests.unit.evaluator.pooling import FAILED, pool, request

LIMITS = CanaryLimits(back_off_s=10.0, back_off_most_s=25.0, probes_max=4, failures_in_a_row=3, every_s=100.0)
MISSED = Finding(fault="the known cheat `zeros` passed")
OURS = Evaluation(status=Status.INFRASTRUCTURE)
ONE, OTHER = request("one"), request("other")


def of_operator(asked, source):
    return replace(asked, operator=replace(asked.operator, source_hash=source))


def sound():
    made = Quarantine(LIMITS)
    made.probed(Finding(), 0.0, thorough=True)
    return made


def test_a_worker_does_not_work_before_its_first_probe():
    made = Quarantine(LIMITS)
    assert (made.standing, made.due(0.0)) == (Standing.UNTRIED, True)
    made.probed(Finding(), 0.0, thorough=False)
    assert made.working


def test_a_missed_cheat_takes_a_worker_out_of_work_and_a_good_probe_brings_it_back():
    made = sound()
    made.probed(MISSED, 5.0, thorough=True)
    assert (made.standing, made.reason, made.admitted.is_set()) == (Standing.QUARANTINED, MISSED.fault, False)
    assert (made.due(14.9), made.due(15.0)) == (False, True)
    made.probed(Finding(), 15.0, thorough=False)
    assert (made.working, made.reason) == (True, "")


def test_the_back_off_doubles_up_to_its_limit_and_too_many_bad_probes_keep_a_worker_out():
    made, waits = sound(), []
    for _ in range(LIMITS.probes_max - 1):
        made.probed(MISSED, 0.0, thorough=False)
        waits.append(made.wait_s(0.0))
    assert waits == [10.0, 20.0, 25.0]
    made.probed(MISSED, 0.0, thorough=False)
    assert (made.standing, made.due(1e9)) == (Standing.OUT, False)


def test_failures_of_ours_in_a_row_make_a_worker_try_itself_at_once():
    made = sound()
    for _ in range(LIMITS.failures_in_a_row - 1):
        made.answered(ONE, OURS, 1.0)
    assert not made.due(1.0)
    made.answered(ONE, OURS, 1.0)
    assert made.due(1.0)
    assert made.wake.is_set()


def test_failures_over_several_operators_that_a_good_probe_does_not_explain_pause_it_longer_each_time():
    made, waits = sound(), []
    for turn in range(3):
        for number in range(LIMITS.failures_in_a_row):
            made.answered(of_operator(ONE, f"{turn}/{number}"), OURS, 0.0)
        if made.working:
            made.probed(Finding(), 0.0, thorough=True)
            made.answered(OTHER, OURS, 0.0)
        assert made.standing is Standing.QUARANTINED
        waits.append(made.wait_s(0.0))
        made.probed(Finding(), 0.0, thorough=True)
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]


def test_one_operator_that_cannot_be_run_does_not_pause_a_worker_that_passes_its_probes():
    made = sound()
    for _ in range(5):
        for _ in range(LIMITS.failures_in_a_row):
            made.answered(ONE, OURS, 0.0)
        made.probed(Finding(), 0.0, thorough=True)
    assert made.working


def test_a_verdict_ends_a_row_of_failures():
    made = sound()
    for _ in range(10):
        for _ in range(LIMITS.failures_in_a_row - 1):
            made.answered(ONE, OURS, 1.0)
        made.answered(ONE, FAILED, 1.0)
    assert not made.due(1.0)


def test_a_worker_tries_itself_after_so_many_evaluations():
    made = Quarantine(CanaryLimits(every_evaluations=3))
    made.probed(Finding(), 0.0, thorough=True)
    for _ in range(3):
        assert not made.due(1.0)
        made.answered(ONE, FAILED, 1.0)
    assert made.due(1.0)


async def announced(made):
    letters = [wire.decode(one.record).event async for one in made.ports.bus.history(topics.CAPACITY)]
    return [(event.state, event.reason) for event in letters if isinstance(event, CapacityAnnounced)]


@on_loop
async def test_a_pools_worker_that_is_unsound_at_the_start_takes_nothing_announces_why_and_works_after_its_back_off():
    async with pool() as made, made.worker(canary=CanaryLimits(back_off_s=0.2), findings=[MISSED]) as running:
        await made.publish(request("waits"))
        await until(lambda: running.worker.quarantine.standing is Standing.QUARANTINED)
        assert running.worker.quarantine.reason == MISSED.fault
        assert running.puppet.begun == []
        await made.answers(1)
        assert running.puppet.probes[:2] == [False, False]
        assert running.count(Happening.UNSOUND) == 1
        assert (await announced(made))[:2] == [
            (WorkerState.QUARANTINED, MISSED.fault),
            (WorkerState.READY, ""),
        ]


@on_loop
async def test_a_verdict_made_while_its_worker_was_found_unsound_is_withdrawn_and_made_again():
    judging, go_on = asyncio.Event(), asyncio.Event()

    async def act(_):
        judging.set()
        await go_on.wait()

    canary = CanaryLimits(back_off_s=0.1, clock_after_s=0.05)
    async with pool() as made, made.worker(act, canary=canary, findings=[Finding(), MISSED]) as running:
        await made.publish(request("twice"))
        await judging.wait()
        await until(lambda: running.worker.quarantine.standing is Standing.QUARANTINED)
        go_on.set()
        assert len(await made.answers(1)) == 1
        assert running.count(Happening.WITHDRAWN) == 1
        assert running.puppet.begun == ["twice", "twice"]


@on_loop
async def test_a_worker_in_quarantine_refuses_evaluations_on_demand_with_its_reason():
    async with pool() as made, made.worker(canary=CanaryLimits(back_off_s=60.0), findings=[MISSED]) as running:
        await until(lambda: running.worker.quarantine.standing is Standing.QUARANTINED)
        on_demand = OnDemand(made.ports.store, running.puppet, running.worker)
        asked = Asked(operator_name="o", operator_source="x", language="cpp", kernel_source="y")
        with pytest.raises(Unavailable, match="zeros"):
            await anext(on_demand.evaluate(asked))


@on_loop
async def test_a_worker_that_is_out_for_good_stays_and_says_why_unless_it_is_to_leave():
    limits = CanaryLimits(back_off_s=0.01, probes_max=2)
    async with pool() as made, made.worker(canary=limits, findings=[MISSED] * 5) as running:
        await until(lambda: running.worker.quarantine.standing is Standing.OUT)
        assert running.worker.hindered() == MISSED.fault
        assert not running.task.done()
    async with pool() as made, made.worker(canary=limits, findings=[MISSED] * 5, leaves_when_out=True) as running:
        running.failure_expected = True
        await asyncio.wait({running.task})
        with pytest.raises(ExceptionGroup) as raised:
            running.task.result()
        assert raised.group_contains(Unsound, match="zeros")
