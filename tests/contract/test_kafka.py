"""The Kafka adapter honours its port, on a real broker, and outlives it.

``KAFKA_BOOTSTRAP=host:port`` runs the contract on another cluster, whose topics are deleted before each test: use one
that holds nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import aiokafka.producer.sender
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest as OldInitProducerIdRequest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from shared import topics
from shared.adapters import open_bus
from shared.bus import Bus, Delivery, Record, Subscription
from shared.bus.kafka import KafkaBus
from shared.bus.kafka_farewells import CLOSE_S
from shared.clock import ManualClock
from shared.consume import Consumer
from shared.errors import Poison, Unavailable
from shared.patience import patiently
from tests import servers
from tests.aio import on_loop
from tests.contract.bus_contract import TOPIC, BusContract, a_record, drained, together, values

# Tansu takes a second to form a group. A session shorter than that makes it forget a member that left at once, which
# suits a test of one member after the other; members beside each other need a session that outlasts a rebalance.
QUICK = {
    "KAFKA_REPLICATION": "1",
    "KAFKA_LEAVE_ON_CLOSE": "false",
    "KAFKA_FETCH_MAX_WAIT_MS": "20",
    "KAFKA_SESSION_TIMEOUT_MS": "400",
    "KAFKA_HEARTBEAT_INTERVAL_MS": "100",
    "KAFKA_REBALANCE_TIMEOUT_MS": "1000",
    "KAFKA_WATCH_INTERVAL_MS": "100",
    "KAFKA_REWIND_PATIENCE_MS": "300",
    "KAFKA_PUBLISH_TIMEOUT_MS": "3000",
    "KAFKA_COMMIT_TIMEOUT_MS": "3000",
}
SHARED = {**QUICK, "KAFKA_SESSION_TIMEOUT_MS": "2000", "KAFKA_REBALANCE_TIMEOUT_MS": "2000"}


@asynccontextmanager
async def admin(address: str) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=address)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def wiped(address: str) -> None:
    """A cluster without topics, and so without committed offsets."""
    async with admin(address) as client:
        while names := await client.list_topics():
            await client.delete_topics(names)


async def settled(*members: Subscription) -> None:
    """The group has its members; polls, as a member has to, and holds back what comes."""
    for member in members:
        member.pause()
    while owned(*members) != set(range(topics.describe(TOPIC).partitions)):
        for member in members:
            assert await member.poll(0.02) is None
    for member in members:
        member.resume()


def owned(*members: Subscription) -> set[int]:
    """Partitions that exactly one of the members believes to own."""
    known = [member._member for member in members]
    count = Counter(partition for member in known if member for partition in member.positions.owned)
    return {partition for partition, times in count.items() if times == 1}


class TestKafkaBus(BusContract):
    patience_s = 0.3

    @pytest.fixture(autouse=True)
    def _broker(self, request: pytest.FixtureRequest) -> Iterator[None]:
        self.environment = SHARED if "member" in request.node.name or "moved" in request.node.name else QUICK
        given = os.environ.get("KAFKA_BOOTSTRAP")
        if given:
            asyncio.run(wiped(given))
            self.url = f"kafka://{given}"
            yield
            return
        with servers.fresh_broker() as broker:
            self.url = f"kafka://{broker.address}"
            yield

    def make(self) -> Bus:
        return open_bus(self.url, self.environment)

    async def settled(self, *members: Subscription) -> None:
        await settled(*members)


@asynccontextmanager
async def a_bus(broker: servers.Server, **settings: str) -> AsyncIterator[KafkaBus]:
    bus = open_bus(f"kafka://{broker.address}", {**QUICK, **settings})
    assert isinstance(bus, KafkaBus)
    async with bus:
        yield bus


@asynccontextmanager
async def a_stranger(broker: servers.Server) -> AsyncIterator[AIOKafkaProducer]:
    """A producer that knows nothing of this project."""
    async with AIOKafkaProducer(bootstrap_servers=broker.address) as producer:
        yield producer


async def eventually(call: Callable[[], bool]) -> None:
    while not call():
        await asyncio.sleep(0.01)


async def take(member: Subscription, count: int) -> list[Delivery]:
    """The next ``count`` records, however often the bus says that it cannot be reached."""
    found: list[Delivery] = []
    while len(found) < count:
        delivery = await patiently(lambda: member.poll(0.5), "poll")
        found += [delivery] if delivery else []
    return found


@pytest.fixture
def broker() -> Iterator[servers.Server]:
    with servers.fresh_broker() as server:
        yield server


class TestTopics:
    @on_loop
    async def test_a_topic_is_created_as_the_table_says_on_first_use(self, broker: servers.Server) -> None:
        requests = topics.evaluation_requests("cpu-x86_64")
        async with a_bus(broker) as bus:
            await bus.publish(requests, a_record())
            await bus.publish(topics.CAPACITY, a_record())
            await bus.ensure_topics([topics.SKILLS, topics.dead_letters(TOPIC)])
        async with admin(broker.address) as client:
            found = {row["topic"]: len(row["partitions"]) for row in await client.describe_topics()}
        assert found == {requests: 32, topics.CAPACITY: 1, topics.SKILLS: 4, topics.dead_letters(TOPIC): 1}

    @on_loop
    async def test_a_topic_with_fewer_partitions_than_the_table_is_used_and_warned_about(
        self, broker: servers.Server, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with admin(broker.address) as client:
            await client.create_topics([NewTopic(TOPIC, 3, 1)])
        async with a_bus(broker) as bus:
            for number in range(9):
                await bus.publish(TOPIC, a_record(f"k{number}"))
            assert [d.record.key async for d in bus.history(TOPIC, "k7")] == ["k7"]
        assert "has 3 partitions, not 16" in caplog.text

    @on_loop
    async def test_looking_at_a_topic_does_not_create_it(self, broker: servers.Server) -> None:
        async with a_bus(broker) as bus:
            await bus.ping()
            bus.subscribe(TOPIC, "g")
        async with admin(broker.address) as client:
            assert await client.list_topics() == []


class TestRecords:
    @on_loop
    async def test_a_record_above_the_limit_is_refused_at_once_and_stops_nothing(self, broker: servers.Server) -> None:
        async with a_bus(broker) as bus:
            with pytest.raises(Poison, match="the limit is 1,000,000"):
                await bus.publish(TOPIC, a_record(value=bytes(1_000_001)))
            await bus.publish(TOPIC, a_record(value=bytes(999_000)))
            assert [len(d.record.value) async for d in bus.history(TOPIC)] == [999_000]

    @on_loop
    async def test_the_largest_record_still_fits_as_a_dead_letter(self, broker: servers.Server) -> None:
        letters = topics.dead_letters(TOPIC)
        async with a_bus(broker) as bus:
            await bus.publish(letters, Record(key="k", value=bytes(999_999), headers={"dlq_error": bytes(60_000)}))
            assert len([d async for d in bus.history(letters)]) == 1

    @on_loop
    async def test_what_strangers_write_ends_as_dead_letters_and_stops_nothing(self, broker: servers.Server) -> None:
        letters = topics.dead_letters(TOPIC)
        handled: list[object] = []

        async def handle(envelope: object) -> None:
            handled.append(envelope)

        async with a_bus(broker) as bus, a_stranger(broker) as stranger:
            await bus.ensure_topics([TOPIC])
            await stranger.send_and_wait(TOPIC, b"garbage", key=b"\xff\xfe\x00")
            await stranger.send_and_wait(TOPIC, None, key=b"tombstone")
            await stranger.send_and_wait(TOPIC, b"no key")
            await stranger.send_and_wait(TOPIC, b"huge", key=b"h", headers=[("big", bytes(300_000)), ("twice", b"1")])
            async with bus.subscribe(TOPIC, "g") as member:
                consumer = Consumer(bus=bus, subscription=member, handler=handle, clock=ManualClock())
                stop = asyncio.Event()
                running = asyncio.create_task(consumer.run(stop))
                found: list[Delivery] = []
                while len(found) < 4:
                    found = [d async for d in bus.history(letters)]
                stop.set()
                await running
                assert member.lag() == 0
            async with a_reader(broker, letters) as messages:
                keys = {message.key for message in messages}
        assert handled == []
        assert {d.record.value for d in found} == {b"garbage", b"", b"no key", b"huge"}
        assert keys == {b"\xff\xfe\x00", b"tombstone", b"", b"h"}

    @on_loop
    async def test_a_record_that_cannot_be_read_is_passed_by_and_says_so(self, broker: servers.Server) -> None:
        async with a_bus(broker) as bus, a_stranger(broker) as stranger:
            await bus.publish(TOPIC, a_record(value=b"before"))
            (before,) = [delivery async for delivery in bus.history(TOPIC)]
            await produce_with_a_latin1_header(stranger, TopicPartition(TOPIC, before.partition))
            await bus.publish(TOPIC, a_record(value=b"after"))
            async with bus.subscribe(TOPIC, "g") as member:
                found = await take(member, 3)
                assert member.gaps == 0
            told = [delivery async for delivery in bus.history(TOPIC)]
        assert values(found) == values(told) == [b"before", b"", b"after"]
        assert "unreadable" in found[1].record.headers


async def produce_with_a_latin1_header(stranger: AIOKafkaProducer, where: TopicPartition) -> None:
    """Past the driver's own builder, which takes no such name."""

    class Latin1(str):
        __slots__ = ()

        def encode(self, *_: str) -> bytes:
            return super().encode("latin-1")

    builder = _DefaultRecordBatchBuilderPy(
        2, 0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=0, batch_size=1000
    )
    builder.append(0, None, key=b"k", value=b"?", headers=[(Latin1("n\xe4me"), b"1")])
    await stranger.partitions_for(where.topic)
    topics_of_request = [(where.topic, [(where.partition, bytes(builder.build()))])]
    request = ProduceRequest(transactional_id=None, required_acks=-1, timeout=1000, topics=topics_of_request)
    await stranger.client.send(stranger.client.cluster.leader_for_partition(where), request)


@asynccontextmanager
async def a_reader(broker: servers.Server, topic: str) -> AsyncIterator[list[object]]:
    """Everything on ``topic`` as the driver sees it."""
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=broker.address, auto_offset_reset="earliest", fetch_max_wait_ms=50
    ) as consumer:
        found = await consumer.getmany(timeout_ms=2000)
        yield [message for messages in found.values() for message in messages]


class TestProducer:
    @on_loop
    async def test_it_is_idempotent(self, broker: servers.Server, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "shared.bus")
        async with a_bus(broker) as bus:
            await bus.publish(TOPIC, a_record())
            assert bus._publisher.idempotent
        assert "refuses" not in caplog.text

    @on_loop
    async def test_a_broker_that_refuses_idempotence_is_used_without(
        self, broker: servers.Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        caplog.set_level(logging.INFO, "shared.bus")
        monkeypatch.setattr(aiokafka.producer.sender, "InitProducerIdRequest", OldInitProducerIdRequest)
        async with a_bus(broker) as bus:
            for _ in range(2):
                await bus.publish(TOPIC, a_record())
            assert len([delivery async for delivery in bus.history(TOPIC)]) == 2
        assert caplog.text.count("the broker refuses an idempotent producer") == 1


class TestMembers:
    @on_loop
    async def test_nothing_is_lost_between_many_publishers_and_two_members(self, broker: servers.Server) -> None:
        sent = {f"{publisher}-{number}".encode() for publisher in range(20) for number in range(25)}

        async def publish(bus: Bus, publisher: int) -> None:
            for number in range(25):
                await bus.publish(TOPIC, a_record(f"k{number % 5}", f"{publisher}-{number}".encode()))

        async with a_bus(broker, **SHARED) as bus:
            one, two = bus.subscribe(TOPIC, "g"), bus.subscribe(TOPIC, "g")
            async with together(one, two):
                publishing = asyncio.gather(*(publish(bus, publisher) for publisher in range(20)))
                got: Counter[bytes] = Counter()
                while set(got) != sent:
                    for member in (one, two):
                        while (delivery := await member.poll(0.05)) is not None:
                            got[delivery.record.value] += 1
                            await member.commit(delivery)
                await publishing
                assert one.gaps == two.gaps == 0
                assert one.lag() + two.lag() == 0

    @on_loop
    async def test_what_a_killed_member_had_not_committed_is_taken_over(self, broker: servers.Server) -> None:
        async with a_bus(broker, **SHARED) as bus:
            await bus.ensure_topics([TOPIC])
            command = [sys.executable, "-c", VICTIM, f"kafka://{broker.address}"]
            victim = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, **SHARED}, stdout=asyncio.subprocess.PIPE
            )
            assert victim.stdout is not None
            assert await victim.stdout.readline() == b"joined\n"
            for number in range(20):
                await bus.publish(TOPIC, a_record(f"k{number}", str(number).encode()))
            assert await victim.stdout.readline() == b"holds one\n"
            victim.kill()
            await victim.wait()
            async with bus.subscribe(TOPIC, "g") as heir:
                found = await take(heir, 20)
            assert {d.record.value for d in found} == {str(number).encode() for number in range(20)}

    @on_loop
    async def test_pause_outlasts_a_rebalance(self, broker: servers.Server) -> None:
        async with a_bus(broker, **SHARED) as bus, bus.subscribe(TOPIC, "g") as one:
            one.pause()
            async with bus.subscribe(TOPIC, "g") as two:
                two.pause()
                for number in range(30):
                    await bus.publish(TOPIC, a_record(f"k{number}"))
                while owned(one, two) != set(range(16)):
                    assert await one.poll(0.02) is None
                    assert await two.poll(0.02) is None
                assert await one.poll(0.3) is None
                one.resume()
                two.resume()
                assert len(await drained(one, two, patience_s=0.3, least=30)) == 30


VICTIM = """
import asyncio, os, sys
from shared import topics
from shared.adapters import open_bus

async def main():
    async with open_bus(sys.argv[1]) as bus, bus.subscribe(topics.FACTS, "g") as member:
        print("joined", flush=True)
        while await member.poll(1) is None:
            pass
        print("holds one", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


class TestBrokerOutage:
    @on_loop
    async def test_without_a_broker_everything_says_unavailable(self) -> None:
        nowhere = f"kafka://127.0.0.1:{servers.free_port()}"
        async with open_bus(nowhere, QUICK) as bus:
            for call in (
                bus.ping,
                lambda: bus.publish(TOPIC, a_record()),
                lambda: anext(bus.history(TOPIC)),
                lambda: bus.subscribe(TOPIC, "g").__aenter__(),
            ):
                with pytest.raises(Unavailable):
                    await call()

    @on_loop
    async def test_a_broker_that_comes_back_empty_is_used_again_by_whoever_waited(self, broker: servers.Server) -> None:
        async with a_bus(broker) as bus, bus.subscribe(TOPIC, "g") as member:
            for number in range(5):
                await bus.publish(TOPIC, a_record(value=f"old {number}".encode()))
            old = await take(member, 5)
            broker.kill()
            with pytest.raises(Unavailable):
                await bus.ping()
            with pytest.raises(Unavailable):
                await bus.publish(TOPIC, a_record())
            with pytest.raises(Unavailable):
                await member.commit(old[-1])
            with pytest.raises(Unavailable):
                while True:
                    await member.poll(0.05)
            broker.start()
            await patiently(bus.ping, "ping")
            for number in range(3):
                value = f"new {number}".encode()
                await patiently(lambda value=value: bus.publish(TOPIC, a_record(value=value)), "publish")
            found = await take(member, 3)
            assert values(found) == [b"new 0", b"new 1", b"new 2"]
            assert not await member.commit(old[-1])
            assert await member.commit(found[-1])
            assert member.lag() == 0
            async with admin(broker.address) as client:
                (row,) = await client.describe_topics([TOPIC])
            assert len(row["partitions"]) == 16

    @on_loop
    async def test_closing_does_not_wait_for_a_broker_that_is_gone(self, broker: servers.Server) -> None:
        loop = asyncio.get_running_loop()
        async with a_bus(broker) as bus, bus.subscribe(TOPIC, "g"):
            await bus.publish(TOPIC, a_record())
            broker.kill()
            began_s = loop.time()
        assert loop.time() - began_s < CLOSE_S

    @on_loop
    async def test_a_broker_that_hangs_is_unavailable_and_then_goes_on(self, broker: servers.Server) -> None:
        async with a_bus(broker, KAFKA_WATCH_TIMEOUT_MS="300", KAFKA_PUBLISH_TIMEOUT_MS="300") as bus:
            await patiently(lambda: bus.publish(TOPIC, a_record(value=b"1")), "publish")
            broker.freeze()
            with pytest.raises(Unavailable):
                await bus.ping()
            with pytest.raises(Unavailable):
                await bus.publish(TOPIC, a_record(value=b"2"))
            broker.thaw()
            await patiently(lambda: bus.publish(TOPIC, a_record(value=b"2")), "publish")
            found = {delivery.record.value async for delivery in bus.history(TOPIC)}
            assert found == {b"1", b"2"}
