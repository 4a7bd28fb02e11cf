"""Workers as processes over Kafka, MongoDB and Redis protocols: no request is lost, whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from evaluator_svc.simulated import CRASHES, HANGS
from shared.events import Envelope, Evaluation, EvaluationCompleted, Status
from tests import servers
from tests.aio import on_loop
from tests.integration.pool.workers import CONTINUE, END, KILL, LOOK_S, STOP, Servers, asking, workers

pytestmark = pytest.mark.timeout(90)

MANY = [f"kernel {n}" for n in range(40)]


def verdict(envelope: Envelope) -> Evaluation:
    assert isinstance(envelope.event, EvaluationCompleted)
    return envelope.event.evaluation


def assert_one_verdict_each(found: dict[str, list[Envelope]]) -> None:
    """An answer may come again, as the same event with the same verdict."""
    for answers in found.values():
        assert len({each.id for each in answers}) == 1
        assert len({replace(verdict(each), memoised=False) for each in answers}) == 1


@pytest.fixture
def made() -> Iterator[Servers]:
    cache = servers.fresh_redis()
    with servers.fresh_broker() as broker:
        url = f"kafka://127.0.0.1:{broker.port}"
        yield Servers(bus_url=url, store_url=servers.mongo_url("pool"), cache=cache)
    cache.close()


@on_loop
async def test_a_worker_that_is_killed_loses_no_request(made: Servers) -> None:
    with workers(made, 2) as (one, _):
        async with asking(made, "killed") as pool:
            await pool.ask(*MANY)
            await pool.answered(count=5)
            one.signal(KILL)
            found = await pool.answered(*MANY)
    assert {verdict(each).status for answers in found.values() for each in answers} == {Status.PASSED}


@on_loop
async def test_a_worker_that_was_stopped_for_too_long_gives_no_late_result(made: Servers) -> None:
    with workers(made, 2, SIMULATED_SIGMA="0", SIMULATED_MEDIAN_S="0.5") as (zombie, other):
        async with asking(made, "zombie") as pool:
            await pool.ask(*MANY[:12])
            await pool.answered(count=3)
            zombie.signal(STOP)
            await pool.answered(*MANY[:12])
            zombie.signal(CONTINUE)
            await pool.ask("after")
            await pool.answered("after")
            for each in (zombie, other):
                each.signal(END)
            assert [await zombie.ended(), await other.ended()] == [0, 0]
            assert "what was made of it dropped" in zombie.log.read_text()
            found = await pool.answers()
    assert_one_verdict_each(found)


@on_loop
async def test_a_kernel_that_takes_its_workers_along_is_given_up_after_k_of_them(made: Servers) -> None:
    with workers(made, 3, EVALUATOR_DELIVERIES_MAX="2") as started:
        async with asking(made, "crash") as pool:
            await pool.ask("killer", text=CRASHES)
            await pool.ask("harmless")
            await pool.answered("killer", "harmless")
            await pool.ask("killer", text=CRASHES)  # as a bus does that delivers twice
            while len((found := await pool.answers())["killer"]) < 2:
                await asyncio.sleep(LOOK_S)
        dead = [each for each in started if each.process.poll() is not None]
    assert_one_verdict_each(found)
    answer, *_ = found["killer"]
    evidence = {entry.name: entry.value for entry in verdict(answer).evidence}
    assert verdict(answer).status is Status.INFRASTRUCTURE
    assert len(dead) == 2
    assert all(each.name in evidence["lost_by"] for each in dead)


@on_loop
async def test_a_worker_that_cannot_end_its_evaluation_ends_itself(made: Servers) -> None:
    limits = {"EVALUATOR_DELIVERIES_MAX": "1", "EVALUATOR_DEADLINE_S": "0.5"}
    with workers(made, 2, **limits) as started:
        async with asking(made, "hang") as pool:
            await pool.ask("hangs", text=HANGS)
            found = await pool.answered("hangs")
        (answer,) = found["hangs"]
        assert verdict(answer).status is Status.INFRASTRUCTURE
        (stuck,) = [each for each in started if each.name not in answer.source]
        assert await stuck.ended() > 0


@on_loop
async def test_a_worker_told_to_stop_finishes_what_it_has(made: Servers) -> None:
    with workers(made, 2) as (one, _):
        async with asking(made, "drain") as pool:
            await pool.ask(*MANY)
            await pool.answered(count=5)
            one.signal(END)
            assert await one.ended() == 0
            found = await pool.answered(*MANY)
    assert_one_verdict_each(found)


@on_loop
async def test_a_cache_that_dies_and_comes_back_empty_loses_no_request(made: Servers) -> None:
    with workers(made, 2):
        async with asking(made, "cache") as pool:
            await pool.ask(*MANY)
            await pool.answered(count=5)
            made.cache.kill()
            made.cache.start()
            await pool.answered(*MANY)
