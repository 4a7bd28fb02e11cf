"""The Kafka adapter when something fails halfway: nothing is lost, nothing stays behind, nobody waits in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiokafka import TopicPartition

from shared.bus import kafka_farewells
from shared.bus.kafka_driver import driver_errors
from shared.errors import Fatal, Unavailable
from tests import servers
from tests.aio import on_loop
from tests.contract.bus_contract import TOPIC, a_record
from tests.contract.test_kafka import a_bus, a_stranger, produce_with_a_latin1_header, take


@pytest.fixture
def broker() -> Iterator[servers.Server]:
    with servers.fresh_broker() as server:
        yield server


def others() -> set[asyncio.Task[object]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


class TestRecords:
    @on_loop
    async def test_a_record_that_cannot_be_read_costs_no_other(self, broker: servers.Server) -> None:
        sent = {f"{number}".encode() for number in range(40)}
        async with a_bus(broker) as bus, a_stranger(broker) as stranger:
            for value in sorted(sent)[:20]:
                await bus.publish(TOPIC, a_record(value.decode(), value))
            await produce_with_a_latin1_header(stranger, TopicPartition(TOPIC, 3))
            for value in sorted(sent)[20:]:
                await bus.publish(TOPIC, a_record(value.decode(), value))
            async with bus.subscribe(TOPIC, "g") as member:
                found = await take(member, 41)
                assert member.gaps == 0
            told = [delivery async for delivery in bus.history(TOPIC)]
        for deliveries in (found, told):
            assert {d.record.value for d in deliveries} == {*sent, b""}
            assert sum("unreadable" in d.record.headers for d in deliveries) == 1


class TestClosing:
    @on_loop
    async def test_closing_the_bus_first_leaves_the_group_for_the_readers(self, broker: servers.Server) -> None:
        before = others()
        async with a_bus(broker) as bus:
            member = await bus.subscribe(TOPIC, "g").__aenter__()
            polling = asyncio.create_task(member.poll(60))
            await asyncio.sleep(0)
        with pytest.raises(Fatal):
            await polling
        await member.__aexit__(None, None, None)
        assert others() == before

    @on_loop
    async def test_a_broker_that_hangs_is_left_behind_whole(
        self, broker: servers.Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kafka_farewells, "CLOSE_S", 0.2)
        before = others()
        async with a_bus(broker, KAFKA_LEAVE_ON_CLOSE="true") as bus, bus.subscribe(TOPIC, "g") as member:
            await bus.publish(TOPIC, a_record())
            await take(member, 1)
            # Tansu counts generations from 0, where the driver sees nothing to leave.
            member._member._consumer._driver._coordinator.generation = 1
            broker.freeze()
        broker.thaw()
        assert others() == before

    @on_loop
    async def test_what_is_in_progress_opens_nothing_after_the_close(self, broker: servers.Server) -> None:
        before = others()
        async with a_bus(broker) as bus:
            publishing = [asyncio.create_task(bus.publish(TOPIC, a_record())) for _ in range(3)]
            await asyncio.sleep(0)
        results = await asyncio.gather(*publishing, return_exceptions=True)
        assert all(isinstance(result, Fatal | Unavailable) for result in results), results
        assert others() == before


class TestWatch:
    @on_loop
    async def test_when_it_fails_the_bus_says_so(self, broker: servers.Server, monkeypatch: pytest.MonkeyPatch) -> None:
        async with a_bus(broker) as bus, bus.subscribe(TOPIC, "g") as member:
            polling = asyncio.create_task(member.poll(60))

            async def fail() -> None:
                raise KeyError("a bug")

            monkeypatch.setattr(bus._connection.topics, "look_again", fail)
            with pytest.raises(Fatal, match="watch"):
                await polling
            with pytest.raises(Fatal, match="watch"):
                await bus.publish(TOPIC, a_record())

    @on_loop
    async def test_a_topic_that_is_refused_does_not_make_the_broker_unreachable(
        self, broker: servers.Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def refuse() -> None:
            raise Fatal("topic x: not allowed")

        async with a_bus(broker) as bus:
            bus._connection._gone = Unavailable("no answer")
            monkeypatch.setattr(bus._connection.topics, "look_again", refuse)
            await bus._connection._look()
            await bus._connection._look()
            bus._connection.check_reachable()
        assert caplog.text.count("topic x: not allowed") == 1

    @on_loop
    async def test_topics_of_strangers_do_not_matter(self, broker: servers.Server) -> None:
        class Cluster:
            """With a topic that has no leader."""

            async def partitions(self, names: list[str]) -> dict[str, int]:
                return {"stranger": 0, **dict.fromkeys(names, 16)}

            async def ping(self) -> None: ...
            async def close(self) -> None: ...

        async with a_bus(broker) as bus:
            bus._connection.topics._admin = Cluster()
            await bus._connection.topics.look_again()
            await bus.ensure_topics([TOPIC])
            await bus._connection.topics.look_again()


class TestMember:
    @on_loop
    async def test_a_slow_answer_does_not_undo_a_commit(
        self, broker: servers.Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with a_bus(broker) as bus, bus.subscribe(TOPIC, "g") as subscription:
            await bus.publish(TOPIC, a_record(value=b"1"))
            await bus.publish(TOPIC, a_record(value=b"2"))
            first, second = await take(subscription, 2)
            member = subscription._member
            assert member is not None
            ask, go_on = member._consumer.starts, asyncio.Event()

            async def slow(numbers: list[int]) -> dict[int, int]:
                answer = await ask(numbers)
                await go_on.wait()
                return answer

            member._known = False
            monkeypatch.setattr(member._consumer, "starts", slow)
            late = asyncio.create_task(member._learn())
            await asyncio.sleep(0.1)
            monkeypatch.setattr(member._consumer, "starts", ask)
            assert await subscription.commit(second)
            go_on.set()
            await late
            assert not await subscription.commit(first)


@on_loop
async def test_a_cancellation_that_comes_from_the_driver_ends_nobody() -> None:
    abandoned = asyncio.get_running_loop().create_future()
    abandoned.cancel()
    with pytest.raises(Unavailable, match="ask: the driver gave up"), driver_errors("ask"):
        await abandoned


@on_loop
async def test_a_cancellation_that_comes_from_the_caller_passes() -> None:
    async def wait() -> None:
        with driver_errors("ask"):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
