"""A pool answers every request once, whatever happens to its workers, its queue and its topic."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from evaluator_svc.observer import Happening
from evaluator_svc.slot import Stuck
from shared import endings, topics, wire
from shared.bus import Record
from shared.cache import Work
from shared.cache.memory import MemoryCache
from shared.cache.memory_queues import MemoryWorkQueues
from shared.clock import SECOND_NS, ManualClock, SystemClock
from shared.errors import Fatal, Poison, Unavailable
from shared.events import CapacityAnnounced, Evaluation, EvaluationCompleted, Status
from shared.ports import Ports
from shared.runtime import first_of
from tests.aio import on_loop, until
from tests.unit.evaluator.pooling import CHIP, TOPIC, Pool, enveloped, evidence, pool, request, verdict

pytestmark = pytest.mark.timeout(20)


class Held:
    """An evaluation that waits until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, evaluation_id: str) -> None:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class Queues:
    """Work queues whose server can go away and can lose its data."""

    def __init__(self) -> None:
        self.server = MemoryWorkQueues(SystemClock())
        self.gone = False

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            if self.gone:
                await asyncio.sleep(0)
                raise Unavailable("no queue server")
            return await getattr(self.server, name)(*arguments)

        return call


class Cache:
    """A cache back end whose work queues can go away."""

    def __init__(self) -> None:
        self.queues = Queues()
        self.cache = MemoryCache(SystemClock())


def over(ports: Ports, cache: Cache) -> Ports:
    return replace(ports, cache=cache)  # type: ignore[arg-type]


@on_loop
async def test_a_request_asked_again_while_it_is_worked_on_is_evaluated_once() -> None:
    held = Held()
    async with pool() as made, made.worker(held) as running:
        await made.publish(request("a"), request("a"))
        await until(lambda: running.count(Happening.TAKEN_IN) == 2)
        held.go.set()
        await made.answers(1)
        while running.worker.lag() != 0:
            await asyncio.sleep(0.01)
        assert await made.answered() == ["a"]
    assert running.puppet.begun == ["a"]


@on_loop
async def test_a_request_asked_again_later_is_answered_from_memory_under_the_same_identity() -> None:
    async with pool() as made, made.worker() as running:
        await made.publish(request("a"))
        (first,) = await made.answers(1)
        while running.worker.lag() != 0:
            await asyncio.sleep(0.01)
        await made.publish(request("a"))
        (second,) = await made.answers(1)
    assert first.id == second.id
    assert (verdict(first).memoised, verdict(second).memoised) == (False, True)
    assert running.puppet.begun == ["a"]


@on_loop
async def test_nothing_is_evaluated_for_a_search_that_has_ended_unless_it_was_before() -> None:
    async with pool() as made, made.worker() as running:
        await made.publish(request("a"))
        await made.answers(1)
        while running.worker.lag() != 0:
            await asyncio.sleep(0.01)
        await endings.note(made.ports.cache.cache, request("a").search_id)
        await made.publish(request("a"), request("b"))
        found = {answer.event.evaluation_id: verdict(answer) for answer in await made.answers(2)}
    assert found["a"].memoised
    assert found["b"].status is Status.CANCELLED
    assert running.puppet.begun == ["a"]


@on_loop
async def test_any_worker_takes_any_request() -> None:
    held = Held()
    async with pool() as made, made.worker(held) as one, made.worker(held) as other:
        await made.publish(*(request(name, candidate="same partition") for name in ("a", "b")))
        await until(lambda: one.worker.busy + other.worker.busy == 2)
        held.go.set()
        await made.answers(2)


@on_loop
async def test_a_slot_goes_on_while_a_verdict_waits_for_the_store_but_holds_no_more_than_two() -> None:
    class Documents:
        def __init__(self, inner: Any) -> None:
            self.inner, self.back = inner, asyncio.Event()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def create(self, *arguments: Any) -> Any:
            await self.back.wait()
            return await self.inner.create(*arguments)

    class Store:
        def __init__(self, inner: Any) -> None:
            self.documents, self.journal, self.blobs = Documents(inner.documents), inner.journal, inner.blobs

    async with pool() as made:
        store = Store(made.ports.store)
        async with made.worker(ports=replace(made.ports, store=store)) as running:  # type: ignore[arg-type]
            await made.publish(*(request(name) for name in ("a", "b", "c")))
            await until(lambda: len(running.puppet.begun) == 2)
            await asyncio.sleep(0.1)
            assert len(running.puppet.begun) == 2
            store.documents.back.set()
            await made.answers(3)


@on_loop
async def test_a_large_search_does_not_starve_a_small_one() -> None:
    held = Held()
    async with pool() as made, made.worker(held) as running:
        await made.publish(*(request(f"large {n}", search="large") for n in range(30)))
        await until(lambda: running.count(Happening.TAKEN_IN) == 30)
        await made.publish(request("small", search="small"))
        await until(lambda: running.count(Happening.TAKEN_IN) == 31)
        held.go.set()
        await made.answers(31)
    assert running.puppet.begun.index("small") <= 2


@on_loop
async def test_an_urgent_request_goes_first() -> None:
    held = Held()
    async with pool() as made, made.worker(held) as running:
        await made.publish(*(request(f"a{n}") for n in range(5)))
        await until(lambda: running.worker.busy == 1 and running.count(Happening.TAKEN_IN) == 5)
        await made.publish(request("urgent", search="other", priority=1))
        await until(lambda: running.count(Happening.TAKEN_IN) == 6)
        held.go.set()
        await made.answers(6)
    assert running.puppet.begun[1] == "urgent"


@on_loop
async def test_a_request_that_costs_its_workers_is_given_up_with_their_names() -> None:
    clock = ManualClock(10**18)
    async with pool(clock) as made:
        queues = made.ports.cache.queues
        asked = request("killer")
        body = wire.pack(enveloped(asked))
        await queues.add(CHIP, Work(id=asked.evaluation_id, flow=asked.search_id, body=body))
        for name in ("dead-1", "dead-2"):
            assert await queues.claim(CHIP, name, 1.0, 0.0) is not None
            clock.advance(2 * SECOND_NS)
        async with made.worker(deliveries_max=2) as running:
            (answer,) = await made.answers(1)
    assert verdict(answer).status is Status.INFRASTRUCTURE
    assert evidence(verdict(answer))["lost_by"] == "dead-1, dead-2"
    assert running.puppet.begun == []
    assert running.count(Happening.GIVEN_UP) == 1


@on_loop
async def test_a_result_whose_claim_was_lost_is_dropped() -> None:
    clock, held = ManualClock(10**18), Held()
    async with pool(clock) as made, made.worker(held, claim_ttl_s=1000.0) as zombie:
        await made.publish(request("a"))
        await until(lambda: zombie.worker.busy == 1)
        clock.advance(2000 * SECOND_NS)  # it was stopped meanwhile
        queues = made.ports.cache.queues
        claim = await queues.claim(CHIP, "other", 1000.0, 0.0)
        assert claim is not None
        assert claim.deliveries == 2
        held.go.set()
        await until(lambda: zombie.count(Happening.FENCED) == 1)
        assert await made.answered() == []
        assert await queues.finish(CHIP, claim, 1)


@on_loop
async def test_an_evaluation_is_ended_when_its_claim_is_lost() -> None:
    held = Held()
    async with pool() as made:
        cache = Cache()
        async with made.worker(held, ports=over(made.ports, cache), claim_ttl_s=0.03) as running:
            await made.publish(request("a"))
            await until(lambda: len(running.puppet.begun) == 1)
            cache.queues.server = MemoryWorkQueues(SystemClock())
            while held.cancelled == 0:
                await asyncio.sleep(0.01)
            held.go.set()
            await made.answers(1)
    assert running.count(Happening.FENCED) == 1
    assert running.puppet.begun == ["a", "a"]


@on_loop
async def test_a_queue_that_loses_its_data_gets_the_requests_again() -> None:
    held = Held()
    async with pool() as made:
        cache = Cache()
        async with made.worker(held, ports=over(made.ports, cache)) as running:
            await made.publish(*(request(f"a{n}") for n in range(5)))
            await until(lambda: running.count(Happening.TAKEN_IN) == 5)
            cache.queues.server = MemoryWorkQueues(SystemClock())
            held.go.set()
            while set(await made.answered()) != {f"a{n}" for n in range(5)}:
                await asyncio.sleep(0.01)
    assert running.count(Happening.ADDED_AGAIN) >= 4


@on_loop
async def test_a_queue_server_that_is_gone_is_waited_for() -> None:
    async with pool() as made:
        cache = Cache()
        cache.queues.gone = True
        async with made.worker(ports=over(made.ports, cache)):
            await made.publish(request("a"))
            await asyncio.sleep(0.05)
            cache.queues.gone = False
            await made.answers(1)


@on_loop
async def test_an_evaluation_past_its_deadline_is_ended_and_says_where_it_was() -> None:
    held = Held()
    async with pool() as made, made.worker(held, deadline_s=0.02) as running:
        await made.publish(request("slow"))
        (answer,) = await made.answers(1)
    assert verdict(answer).status is Status.INFRASTRUCTURE
    assert evidence(verdict(answer))["stage"] == "correctness"
    assert held.cancelled == 1
    assert running.count(Happening.OVERDUE) == 1


@on_loop
async def test_a_worker_whose_evaluation_cannot_be_ended_ends_itself_and_renews_no_claim() -> None:
    free, told = asyncio.Event(), []

    async def hang(_: str) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with pool() as made:
        async with made.worker(hang, deadline_s=0.02, when_stuck=lambda: told.append(1), claim_ttl_s=0.05) as stuck:
            stuck.failure_expected = True
            await made.publish(request("a"))
            await asyncio.wait({stuck.task})
        assert isinstance(first_of(stuck.task.exception()), Stuck)
        assert told == [1]
        async with made.worker() as other:
            await made.answers(1)
        assert other.count(Happening.REDELIVERED) == 1
        free.set()


@on_loop
async def test_an_evaluation_in_progress_finishes_within_the_drain() -> None:
    held = Held()
    async with pool() as made, made.worker(held, drain_s=10.0) as running:
        await made.publish(request("a"))
        await until(lambda: running.worker.busy == 1)
        running.stop.set()
        await until(lambda: running.worker.draining)
        held.go.set()
        await made.answers(1)


@on_loop
async def test_an_evaluation_that_outlasts_the_drain_goes_to_the_next_worker() -> None:
    held = Held()
    async with pool() as made:
        async with made.worker(held) as first:
            await made.publish(request("a"))
            await until(lambda: first.worker.busy == 1)
        assert first.count(Happening.GIVEN_BACK) == 1
        async with made.worker() as second:
            await made.answers(1)
        assert second.count(Happening.REDELIVERED) == 0


@on_loop
async def test_offsets_are_committed_up_to_the_first_unfinished_request() -> None:
    held = Held()

    async def act(evaluation_id: str) -> None:
        if evaluation_id == "slow":
            await held(evaluation_id)

    async with pool() as made, made.worker(act, slots=2) as running:
        await made.publish(*(request(name, candidate="same partition") for name in ("first", "slow", "last")))
        await made.answers(2)
        await until(lambda: len(running.puppet.begun) == 3)
        while running.worker.lag() != 2:
            await asyncio.sleep(0.01)
        held.go.set()
        while running.worker.lag() != 0:
            await asyncio.sleep(0.01)


@on_loop
async def test_poison_goes_to_the_dead_letters_and_stops_nothing() -> None:
    async with pool() as made, made.worker() as running:
        good = wire.encode(enveloped(request("good", candidate="same")))
        await made.ports.bus.publish(TOPIC, Record(key="same", value=b"garbage", headers=good.headers))
        other = replace(request("other", candidate="same"), chip="abacus")
        await made.ports.bus.publish(TOPIC, wire.encode(enveloped(other)))
        pressing = request("pressing", candidate="same", priority=2**40)
        await made.ports.bus.publish(TOPIC, wire.encode(enveloped(pressing)))
        await made.ports.bus.publish(TOPIC, good)
        await made.answers(1)
        while running.worker.lag() != 0:
            await asyncio.sleep(0.01)
        letters = [each async for each in made.ports.bus.history(topics.dead_letters(TOPIC))]
    assert len(letters) == 3
    assert b"abacus" in letters[1].record.headers["dlq_error"]
    assert b"priority" in letters[2].record.headers["dlq_error"]


@on_loop
async def test_a_verdict_that_no_bus_takes_is_answered_all_the_same_and_stops_nothing() -> None:
    class Bus:
        """Takes no verdict with evidence from an evaluator."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def publish(self, topic: str, record: Record) -> None:
            event = wire.decode(record).event
            if isinstance(event, EvaluationCompleted) and event.evaluation.status is Status.WRONG_RESULT:
                raise Poison("a record of 2 MB")
            await self.inner.publish(topic, record)

    async with pool() as made, made.worker(ports=replace(made.ports, bus=Bus(made.ports.bus))) as running:  # type: ignore[arg-type]
        for _ in range(2):  # the second is remembered
            await made.publish(request("a"))
            (answer,) = await made.answers(1)
            assert verdict(answer).status is Status.INFRASTRUCTURE
            assert "2 MB" in evidence(verdict(answer))["reason"]
            while running.worker.lag() != 0:
                await asyncio.sleep(0.01)


@on_loop
async def test_a_failure_to_renew_that_no_waiting_mends_ends_the_worker() -> None:
    held = Held()
    async with pool() as made:
        cache = Cache()

        async def refused(*_: Any) -> bool:
            raise Fatal("the cache refuses us")

        async with made.worker(held, ports=over(made.ports, cache), claim_ttl_s=0.03) as running:
            running.failure_expected = True
            await made.publish(request("a"))
            await until(lambda: len(running.puppet.begun) == 1)
            cache.queues.server.renew = refused  # type: ignore[method-assign]
            await asyncio.wait({running.task})
        assert "refuses us" in str(first_of(running.task.exception()))  # type: ignore[arg-type]


async def announced(made: Pool) -> list[CapacityAnnounced]:
    letters = [wire.decode(each.record).event async for each in made.ports.bus.history(topics.CAPACITY)]
    return [event for event in letters if isinstance(event, CapacityAnnounced)]


@on_loop
async def test_a_worker_announces_itself_its_drain_and_its_end() -> None:
    async with pool() as made:
        async with made.worker(slots=3, announce_s=0.01) as running:
            while len(await announced(made)) < 2:
                await asyncio.sleep(0.01)
        said = await announced(made)
    states = [event.state.value for event in said]
    assert states[:2] == ["READY", "READY"]
    assert states[-2:] == ["DRAINING", "GONE"]
    assert {(event.worker_id, event.chip, event.slots) for event in said} == {(running.worker.id, CHIP, 3)}


@on_loop
async def test_a_store_that_goes_away_while_evaluating_costs_a_try_and_no_verdict() -> None:
    tries = 0

    async def act(_: str) -> Evaluation | None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise Unavailable("no store")
        return None

    async with pool() as made, made.worker(act):
        await made.publish(request("a"))
        (answer,) = await made.answers(1)
    assert tries == 2
    assert verdict(answer).status is Status.WRONG_RESULT
