"""The service on a bus: one answer per request, the same answer when the request is delivered again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import psutil
import pytest

from evaluator_svc import evaluators, service
from evaluator_svc.evaluate import Evaluator
from evaluator_svc.pool import Worker
from evaluator_svc.stages import Stopwatch
from shared import envelopes, topics, wire
from shared.clock import SystemClock
from shared.errors import ChipError
from shared.events import EvaluationCompleted, Status
from shared.runtime import running
from tests.aio import on_loop
from tests.integration.evaluator.pipeline import SETTINGS, kernel_source, opened, request_for

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]


async def answer(facts):
    while (delivery := await facts.poll(1.0)) is None:
        pass
    await facts.commit(delivery)
    return wire.decode(delivery.record)


@on_loop
async def test_a_request_delivered_twice_is_evaluated_once_and_answered_with_one_identity():
    async with opened() as (ports, evaluator), ports.bus.subscribe(topics.FACTS, "test") as facts:
        request = await request_for(ports, kernel_source("zeros"))
        asked = wire.encode(envelopes.envelope(request, cause_id="cause", source="/test", clock=SystemClock()))
        worker = Worker(ports, evaluator)
        async with running([service.serve(ports, worker, evaluator)], ports):
            await ports.bus.publish(topics.evaluation_requests(request.chip), asked)
            first = await answer(facts)
            while worker.lag() != 0:
                await asyncio.sleep(0.05)
            await ports.bus.publish(topics.evaluation_requests(request.chip), asked)
            second = await answer(facts)
    assert first.id == second.id
    assert isinstance(first.event, EvaluationCompleted)
    assert isinstance(second.event, EvaluationCompleted)
    assert first.event.evaluation.status is Status.WRONG_RESULT
    assert [first.event.evaluation.memoised, second.event.evaluation.memoised] == [False, True]
    assert first.event.kernel_id == request.kernel.kernel_id
    assert first.partition_key == request.search_id


def test_an_unknown_chip_is_refused_with_the_known_ones():
    with pytest.raises(ChipError, match="unknown chip `abacus`.*cpu-x86_64"):
        evaluators.toolchain_of("abacus")


def test_a_missing_compiler_is_refused_with_how_to_install_it(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ChipError, match="install"):
        evaluators.toolchain_of("cpu-x86_64")


@on_loop
async def test_more_threads_than_cores_is_infrastructure_not_a_bad_kernel():
    async with opened() as (ports, evaluator):
        assert isinstance(evaluator, Evaluator)
        request = await request_for(ports, kernel_source("zeros"))
        found = await evaluator.evaluate(replace(request, threads=100_000))
    assert found.status is Status.INFRASTRUCTURE


@on_loop
async def test_an_evaluation_that_is_ended_costs_the_next_one_nothing():
    settings = replace(SETTINGS, limits=replace(SETTINGS.limits, call_s=200.0))
    async with opened(settings) as (ports, evaluator):
        request, watch = await request_for(ports, kernel_source("endless_loop")), Stopwatch()
        await evaluator.admit(request.operator, request.threads)
        oracles = children("oracle_child")
        task = asyncio.create_task(evaluator.evaluate(request, watch))
        while watch.current != "correctness":
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)  # it is the kernel that runs by now, or it is about to
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        found = await evaluator.evaluate(await request_for(ports, kernel_source("zeros")))
        assert found.status is Status.WRONG_RESULT
        assert oracles <= children("oracle_child")


def children(program: str) -> set[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return {child for child in found if any(program in word for word in child.cmdline())}
