"""The consume loop: commit last, bury poison, retry within limits, keep polling."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from shared import topics, wire
from shared.bus import Delivery, Record
from shared.bus.memory import MemoryBus
from shared.clock import ManualClock
from shared.consume import ConsumeLimits, Consumer, Handler
from shared.errors import Fatal, Poison, Retryable, Stranded, Unavailable
from shared.events import Envelope
from tests.aio import on_loop, until
from tests.unit.shared.builders import an_envelope, an_event

TOPIC = topics.FACTS
QUICK = ConsumeLimits(poll_wait_s=0.001, poison_in_a_row_max=2, attempts_max=4, drain_s=0.02)


class World:
    """A bus, and a consumer of its facts that is told to stop once it has nothing left to read."""

    def __init__(self, bus: MemoryBus) -> None:
        self.bus = bus
        self.handled: list[str] = []
        self.pauses: list[float] = []
        self.stop = asyncio.Event()

    async def publish(self, *envelopes: Envelope) -> None:
        for envelope in envelopes:
            await self.bus.publish(TOPIC, wire.encode(envelope))

    async def remember(self, envelope: Envelope) -> None:
        self.handled.append(envelope.id)

    async def consume(self, handler: Handler, limits: ConsumeLimits = QUICK, in_flight: int = 1) -> None:
        async with self.bus.subscribe(TOPIC, "g") as subscription:
            await self.consumer(StopWhenEmpty(subscription, self.stop), handler, limits, in_flight).run(self.stop)

    def consumer(
        self, subscription: object, handler: Handler, limits: ConsumeLimits = QUICK, in_flight: int = 1
    ) -> Consumer:
        return Consumer(
            in_flight=in_flight,
            bus=self.bus,
            subscription=subscription,
            handler=handler,
            clock=ManualClock(5),
            group="g",
            limits=limits,
            sleep=self._sleep,
            jitter=random.Random(1),
        )

    async def left(self, topic: str = TOPIC) -> list[Record]:
        """What the group has not committed."""
        async with self.bus.subscribe(topic, "g") as subscription:
            found = []
            while (delivery := await subscription.poll(0)) is not None:
                found.append(delivery.record)
            return found

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


class StopWhenEmpty:
    """A subscription that sets ``stop`` when it has nothing to deliver although it is not paused."""

    def __init__(self, subscription: object, stop: asyncio.Event) -> None:
        self._subscription, self._stop = subscription, stop
        self._paused = False
        self.polls_while_paused = 0

    async def poll(self, wait_s: float) -> Delivery | None:
        began_paused = self._paused
        delivery = await self._subscription.poll(wait_s)
        self.polls_while_paused += self._paused
        if delivery is None and not self._paused and not began_paused:
            self._stop.set()
        return delivery

    def pause(self) -> None:
        self._paused = True
        self._subscription.pause()

    def resume(self) -> None:
        self._paused = False
        self._subscription.resume()

    async def commit(self, delivery: Delivery) -> bool:
        return await self._subscription.commit(delivery)


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    async with MemoryBus() as bus:
        yield World(bus)


def numbered(count: int) -> list[Envelope]:
    return [an_envelope(n=number) for number in range(count)]


@on_loop
async def test_every_record_is_handled_in_order_and_committed() -> None:
    async with a_world() as world:
        envelopes = numbered(20)
        await world.publish(*envelopes)
        await world.consume(world.remember)
        assert world.handled == [envelope.id for envelope in envelopes]
        assert await world.left() == []


@on_loop
async def test_a_handler_that_fails_stops_the_loop_and_its_record_comes_again() -> None:
    async with a_world() as world:
        first, second, third = numbered(3)
        await world.publish(first, second, third)

        async def fails_on_the_second(envelope: Envelope) -> None:
            if envelope.id == second.id:
                raise ZeroDivisionError("bug")
            await world.remember(envelope)

        with pytest.raises(ZeroDivisionError):
            await world.consume(fails_on_the_second)
        assert world.handled == [first.id]
        await world.consume(world.remember)
        assert world.handled == [first.id, second.id, third.id]


@on_loop
async def test_a_fatal_error_is_not_dead_lettered() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())

        async def store_is_gone(envelope: Envelope) -> None:
            raise Fatal("store is gone")

        with pytest.raises(Fatal, match="store is gone"):
            await world.consume(store_is_gone)
        assert len(await world.left()) == 1
        assert await world.left(topics.dead_letters(TOPIC)) == []


@on_loop
async def test_poison_is_buried_with_its_bytes_and_reasons_and_the_rest_goes_on() -> None:
    async with a_world() as world:
        broken = replace(wire.encode(an_envelope()), value=b"\xff")
        await world.bus.publish(TOPIC, broken)
        await world.publish(an_envelope(n=1))
        await world.consume(world.remember)
        assert world.handled == [an_envelope(n=1).id]
        assert await world.left() == []
        (letter,) = await world.left(topics.dead_letters(TOPIC))
        assert (letter.key, letter.value) == (broken.key, broken.value)
        assert {name: letter.headers[name] for name in broken.headers} == dict(broken.headers)
        added = {name: value for name, value in letter.headers.items() if name not in broken.headers}
        assert added.pop("dlq_error").startswith(b"bytes are not a protos.events.v1.SearchCancelled")
        assert int(added.pop("dlq_partition")) >= 0
        assert added == {
            "dlq_topic": TOPIC.encode(),
            "dlq_offset": b"0",
            "dlq_group": b"g",
            "dlq_attempts": b"1",
            "dlq_first_failed_at": b"1970-01-01T00:00:00.000000005Z",
        }


@on_loop
async def test_a_handler_may_call_a_record_poison() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())

        async def refuses(envelope: Envelope) -> None:
            raise Poison("its blob is not what its name says")

        await world.consume(refuses)
        (letter,) = await world.left(topics.dead_letters(TOPIC))
        assert letter.headers["dlq_error"] == b"its blob is not what its name says"
        assert await world.left() == []


@on_loop
async def test_more_refusals_in_a_row_than_the_limit_stop_the_loop() -> None:
    async with a_world() as world:
        for number in range(5):
            await world.publish(an_envelope(n=number))

        async def refuses(envelope: Envelope) -> None:
            raise Poison("no")

        with pytest.raises(Fatal, match="3 poison records in a row"):
            await world.consume(refuses)
        assert len(await world.left(topics.dead_letters(TOPIC))) == 3
        assert len(await world.left()) == 2


@on_loop
async def test_records_of_one_broken_thing_are_buried_and_stop_nothing() -> None:
    async with a_world() as world:
        for number in range(8):
            await world.publish(an_envelope(n=number))

        async def strands(envelope: Envelope) -> None:
            raise Stranded("its search is broken")

        await world.consume(strands)
        assert len(await world.left(topics.dead_letters(TOPIC))) == 8
        assert await world.left() == []


@on_loop
async def test_a_good_record_starts_the_count_of_refusals_again() -> None:
    async with a_world() as world:
        for number in range(12):
            await world.publish(an_envelope(n=number))

        async def takes_every_third(envelope: Envelope) -> None:
            world.handled.append(envelope.id)
            if len(world.handled) % 3:
                raise Poison("no")

        await world.consume(takes_every_third)
        assert len(world.handled) == 12


@on_loop
async def test_garbage_stops_nothing_however_much_there_is() -> None:
    async with a_world() as world:
        for _ in range(50):
            await world.bus.publish(TOPIC, Record(key="s1", value=b"", headers={}))
        await world.publish(an_envelope())
        await world.consume(world.remember)
        assert world.handled == [an_envelope().id]
        assert len(await world.left(topics.dead_letters(TOPIC))) == 50


@on_loop
async def test_a_dependency_that_is_gone_is_waited_for_longer_than_any_number_of_tries() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())

        async def gone_for_a_while(envelope: Envelope) -> None:
            if len(world.pauses) < 30:
                raise Unavailable("no primary")
            await world.remember(envelope)

        await world.consume(gone_for_a_while, replace(QUICK, attempts_max=2))
        assert world.handled == [an_envelope().id]
        assert await world.left() == []


@on_loop
async def test_a_retryable_failure_is_tried_again_after_growing_jittered_pauses() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())
        limits = replace(QUICK, attempts_max=6, backoff_s=1.0, backoff_max_s=4.0)

        async def busy_five_times(envelope: Envelope) -> None:
            if len(world.pauses) < 5:
                raise Retryable("busy")
            await world.remember(envelope)

        await world.consume(busy_five_times, limits)
        assert world.handled == [an_envelope().id]
        assert len(set(world.pauses)) == 5
        assert all(0 <= pause <= bound for pause, bound in zip(world.pauses, (1, 2, 4, 4, 4), strict=True))


@on_loop
async def test_tries_run_out_and_the_record_is_not_lost() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())
        tries: list[str] = []

        async def always_busy(envelope: Envelope) -> None:
            tries.append(envelope.id)
            raise Retryable("device is busy")

        with pytest.raises(Fatal, match="gave up after 4 tries: device is busy"):
            await world.consume(always_busy)
        assert len(tries) == 4
        assert len(await world.left()) == 1


@on_loop
async def test_while_a_handler_runs_the_member_keeps_polling_and_gets_nothing() -> None:
    async with a_world() as world, world.bus.subscribe(TOPIC, "g") as subscription:
        await world.publish(*numbered(2))
        watched = StopWhenEmpty(subscription, world.stop)

        async def slow(envelope: Envelope) -> None:
            polls = watched.polls_while_paused
            await until(lambda: watched.polls_while_paused >= polls + 3)
            await world.remember(envelope)

        await world.consumer(watched, slow).run(world.stop)
        assert world.handled == [envelope.id for envelope in numbered(2)]
        assert watched.polls_while_paused >= 6


@on_loop
async def test_told_to_stop_it_finishes_the_record_in_flight_and_takes_no_other() -> None:
    async with a_world() as world:
        await world.publish(*numbered(3))

        async def stops_itself(envelope: Envelope) -> None:
            world.stop.set()
            await asyncio.sleep(0)
            await world.remember(envelope)

        await world.consume(stops_itself, replace(QUICK, drain_s=60.0))
        assert world.handled == [an_envelope().id]
        assert len(await world.left()) == 2


@on_loop
async def test_a_record_that_arrives_after_the_order_to_stop_is_left_for_the_next_run() -> None:
    async with a_world() as world:
        async with world.bus.subscribe(TOPIC, "g") as subscription:
            consumer = world.consumer(subscription, world.remember, replace(QUICK, poll_wait_s=60.0))
            loop = asyncio.create_task(consumer.run(world.stop))
            await asyncio.sleep(0)
            world.stop.set()
            await world.publish(an_envelope())
            await loop
        assert world.handled == []
        assert len(await world.left()) == 1


@on_loop
async def test_a_drain_without_a_bus_pauses_between_its_polls() -> None:
    async with a_world() as world, world.bus.subscribe(TOPIC, "g") as subscription:
        await world.publish(an_envelope())
        begun, polls = asyncio.Event(), 0

        class Gone:
            """Delivers one record; then its broker is away, and says so at once."""

            def __getattr__(self, name: str) -> object:
                return getattr(subscription, name)

            async def poll(self, wait_s: float) -> Delivery | None:
                nonlocal polls
                polls += 1
                if begun.is_set():
                    raise Unavailable("no broker")
                return await subscription.poll(wait_s)

        async def never_ends(envelope: Envelope) -> None:
            begun.set()
            world.stop.set()
            await asyncio.Event().wait()

        consumer = Consumer(
            bus=world.bus,
            subscription=Gone(),
            handler=never_ends,
            clock=ManualClock(5),
            limits=replace(QUICK, poll_wait_s=0.05, drain_s=0.2),
        )
        await consumer.run(world.stop)
        assert polls < 20


@on_loop
async def test_a_handler_that_fails_while_the_bus_is_gone_is_noticed_at_once() -> None:
    async with a_world() as world, world.bus.subscribe(TOPIC, "g") as subscription:
        await world.publish(an_envelope())
        pausing = asyncio.Event()

        class Gone:
            def __getattr__(self, name: str) -> object:
                return getattr(subscription, name)

            async def poll(self, wait_s: float) -> Delivery | None:
                if (delivery := await subscription.poll(0)) is not None:
                    return delivery
                raise Unavailable("no broker")

        async def fails(envelope: Envelope) -> None:
            await pausing.wait()
            raise ValueError("a bug")

        async def for_ever(seconds: float) -> None:
            pausing.set()
            await asyncio.Event().wait()

        consumer = Consumer(
            bus=world.bus, subscription=Gone(), handler=fails, clock=ManualClock(5), limits=QUICK, sleep=for_ever
        )
        with pytest.raises(ValueError, match="a bug"):
            await consumer.run(world.stop)


@on_loop
async def test_a_handler_that_outlasts_the_drain_is_abandoned_uncommitted() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())
        cancelled = asyncio.Event()

        async def endless(envelope: Envelope) -> None:
            world.stop.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        await world.consume(endless)
        assert cancelled.is_set()
        assert len(await world.left()) == 1


@on_loop
async def test_a_handler_that_cancels_itself_does_not_end_the_loop_in_silence() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())

        async def cancels_itself(envelope: Envelope) -> None:
            raise asyncio.CancelledError

        with pytest.raises(Fatal, match="cancelled itself"):
            await world.consume(cancels_itself)
        assert len(await world.left()) == 1


@on_loop
async def test_cancelling_the_loop_cancels_its_handler_and_commits_nothing() -> None:
    async with a_world() as world:
        await world.publish(an_envelope())
        started = asyncio.Event()

        async def endless(envelope: Envelope) -> None:
            started.set()
            await asyncio.Event().wait()

        loop = asyncio.create_task(world.consume(endless))
        await started.wait()
        loop.cancel()
        await asyncio.wait({loop})
        assert loop.cancelled()
        assert len(await world.left()) == 1


@on_loop
async def test_a_poll_that_fails_after_its_loop_was_killed_is_nobody_s_lost_error() -> None:
    class Closing:
        """Its poll ends only when the subscription is closed, which it says by failing."""

        def __init__(self) -> None:
            self.polled, self.closed = asyncio.Event(), asyncio.Event()

        async def poll(self, wait_s: float) -> None:
            self.polled.set()
            await self.closed.wait()
            raise Fatal("is not open")

    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: lost.append(about))
    async with a_world() as world:
        subscription = Closing()
        running = asyncio.create_task(world.consumer(subscription, world.remember).run(world.stop))
        await subscription.polled.wait()
        for _ in range(2):  # the second one while it lets go
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        subscription.closed.set()
        await asyncio.sleep(0.01)
    del running
    gc.collect()
    await asyncio.sleep(0)
    assert lost == []


@on_loop
async def test_a_record_whose_partition_moved_away_in_flight_is_left_to_its_new_owner() -> None:
    async with a_world() as world, world.bus.subscribe(TOPIC, "g") as subscription:
        keys = [replace(an_envelope(n=number), partition_key=f"k{number}") for number in range(30)]
        await world.publish(*keys)
        newcomer = world.bus.subscribe(TOPIC, "g")

        async def a_member_joins(envelope: Envelope) -> None:
            if not world.handled:
                await newcomer.__aenter__()
            await world.remember(envelope)

        await world.consumer(StopWhenEmpty(subscription, world.stop), a_member_joins).run(world.stop)
        theirs = []
        while (delivery := await newcomer.poll(0)) is not None:
            theirs.append(wire.decode(delivery.record).id)
        await newcomer.__aexit__()
        assert set(world.handled) | set(theirs) == {envelope.id for envelope in keys}
        assert theirs


def spread(count: int) -> list[Envelope]:
    """Envelopes of ``count`` searches, so that they lie on several partitions."""
    return [an_envelope(an_event(f"s{number}"), n=number) for number in range(count)]


@on_loop
async def test_with_several_in_flight_partitions_go_side_by_side_and_records_of_one_in_turn() -> None:
    async with a_world() as world:
        envelopes = [replace(each, id=f"{each.id}-{turn}") for turn in range(3) for each in spread(8)]
        await world.publish(*envelopes)
        running: dict[str, int] = {}
        most = 0

        async def works(envelope: Envelope) -> None:
            nonlocal most
            running[envelope.partition_key] = running.get(envelope.partition_key, 0) + 1
            assert running[envelope.partition_key] == 1
            most = max(most, sum(running.values()))
            for _ in range(20):
                await asyncio.sleep(0)
            running[envelope.partition_key] -= 1
            await world.remember(envelope)

        await world.consume(works, replace(QUICK, drain_s=60.0), in_flight=6)
        assert 1 < most <= 6
        assert sorted(world.handled) == sorted(envelope.id for envelope in envelopes)
        for key in {envelope.partition_key for envelope in envelopes}:
            mine = [envelope.id for envelope in envelopes if envelope.partition_key == key]
            assert [each for each in world.handled if each in mine] == mine
        assert await world.left() == []


@on_loop
async def test_a_failure_beside_others_in_flight_commits_none_of_them() -> None:
    async with a_world() as world:
        await world.publish(*spread(5))
        begun = asyncio.Event()

        async def one_fails(envelope: Envelope) -> None:
            if envelope.partition_key == "s0":
                await begun.wait()
                raise Fatal("store is gone")
            begun.set()
            await asyncio.Event().wait()

        with pytest.raises(Fatal, match="store is gone"):
            await world.consume(one_fails, in_flight=8)
        assert len(await world.left()) == 5
