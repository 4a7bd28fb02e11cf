"""The door to aiokafka, the driver: its errors, its untyped classes and its private parts stay behind it.

What the driver's defaults would do to us, and what is set instead, is said where it is set. Partitions are plain
numbers here, since a consumer reads one topic, and records come as the port's ``Delivery``.

Calls through the door raise the driver's errors; ``attempt`` around them makes them the project's: what may pass is
``Unavailable``, what the broker refuses is ``Fatal``, and a record that is too large is ``Poison``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as DriversNewTopic
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.partitioner import DefaultPartitioner

from shared.bus import Delivery, Record, kafka_logs, kafka_protocol, key_bytes, key_text
from shared.bus.kafka_settings import Cluster, KafkaSettings
from shared.errors import Fatal, Poison, Unavailable

CLIENT_ID = "kernelevolve"
MILLISECOND_NS = 1_000_000
BATCH_OVERHEAD_BYTES = 1024
NO_GENERATION = -1
NOBODYS = -1
"""A partition that no member has."""

REFUSED = (
    errors.TopicAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
)
GONE = (errors.KafkaError, errors.ConsumerStoppedError, OSError, TimeoutError)
MOVED = (errors.CommitFailedError, errors.IllegalStateError)
NO_IDEMPOTENCE = (errors.BrokerResponseError, errors.IncompatibleBrokerVersion, NotImplementedError)

kafka_protocol.install()
kafka_logs.install()
_murmur2 = DefaultPartitioner()


class IdempotenceRefused(Exception):
    """The broker gives no producer id."""


class Unreadable(Exception):
    """Among the records asked for is one that the driver cannot decode; none of them is taken."""


@contextmanager
def driver_errors(what: str) -> Iterator[None]:
    """The driver's errors as the project's; ``what`` names the attempt."""
    try:
        yield
    except errors.MessageSizeTooLargeError as error:
        raise Poison(f"{what}: {error}") from error
    except REFUSED as error:
        raise Fatal(f"{what}: not allowed: {error}") from error
    except GONE as error:
        raise Unavailable(f"{what}: {type(error).__name__}: {error}") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled us: the driver cancelled something of its own. Passed on, it would end its caller in silence.
        raise Unavailable(f"{what}: the driver gave up") from error


@asynccontextmanager
async def attempt(what: str, limit_ms: float | None = None) -> AsyncIterator[None]:
    """``driver_errors`` with a limit, beyond which the answer is ``Unavailable``."""
    with driver_errors(what):
        async with asyncio.timeout(None if limit_ms is None else limit_ms / 1000):
            yield


def partition_of(key: str, partitions: int) -> int:
    """Murmur2 of the key's bytes, as in every Kafka client."""
    numbers = list(range(partitions))
    return int(_murmur2(key_bytes(key), numbers, numbers))


def _connection(cluster: Cluster) -> dict[str, Any]:
    return {
        "bootstrap_servers": list(cluster.servers),
        "security_protocol": cluster.protocol,
        "ssl_context": cluster.tls,
        "sasl_mechanism": cluster.mechanism,
        "sasl_plain_username": cluster.user or None,
        "sasl_plain_password": cluster.password or None,
        "client_id": CLIENT_ID,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be created; ``replication`` -1 is what the broker is set to."""

    name: str
    partitions: int
    replication: int
    config: dict[str, str]


class Admin:
    """Asks about topics, and makes them."""

    def __init__(self, cluster: Cluster, settings: KafkaSettings) -> None:
        self._driver = AIOKafkaAdminClient(**_connection(cluster), request_timeout_ms=settings.watch_timeout_ms)

    async def start(self) -> None:
        try:
            await self._driver.start()
        except BaseException:
            await self._driver.close()
            raise

    async def close(self) -> None:
        await self._driver.close()

    async def ping(self) -> None:
        """Ask for what any broker can answer."""
        await self._driver.describe_topics([])

    async def partitions(self, names: list[str]) -> dict[str, int]:
        """How many those of ``names`` have that exist; 0 while some have no leader. Raises ``Fatal`` when refused."""
        found: dict[str, int] = {}
        for topic in await self._driver.describe_topics(names):
            error = errors.for_code(topic["error_code"])
            if error in REFUSED:
                raise Fatal(f"topic {topic['topic']}: not allowed")
            if error is errors.UnknownTopicOrPartitionError:
                continue
            led = [partition["leader"] >= 0 for partition in topic["partitions"]]
            found[topic["topic"]] = len(led) if all(led) else 0
        return found

    async def create(self, topics: Iterable[NewTopic]) -> list[str]:
        """The names of those created; whoever exists already is left as it is. Raises ``Unavailable`` or ``Fatal``."""
        try:
            answer = await self._driver.create_topics([_drivers(topic) for topic in topics])
        except AttributeError as nobody:  # the driver looks for the address of a controller that is not elected yet
            raise Unavailable("create topics: the cluster has no controller") from nobody
        created = []
        for name, code, *why in answer.topic_errors:
            error = errors.for_code(code)
            if error in (errors.RequestTimedOutError, errors.NotControllerError):
                raise Unavailable(f"create topic {name}: {error.__name__}")
            if error not in (errors.NoError, errors.TopicAlreadyExistsError):
                raise Fatal(f"create topic {name}: {error.__name__} {why}")
            if error is errors.NoError:
                created.append(name)
        return created


def _drivers(topic: NewTopic) -> DriversNewTopic:
    new = DriversNewTopic(topic.name, topic.partitions, 1, topic_configs=topic.config)
    new.replication_factor = topic.replication  # the constructor refuses -1, brokers since 2.4 do not
    return new


class Producer:
    """Sends records. An idempotent one never gives up a batch by itself."""

    def __init__(self, cluster: Cluster, settings: KafkaSettings, *, request_bytes_max: int, idempotent: bool) -> None:
        self._idempotent = idempotent
        self._driver = AIOKafkaProducer(
            **_connection(cluster),
            acks="all",  # the default waits for the leader alone
            enable_idempotence=idempotent,
            partitioner=_murmur2,
            linger_ms=settings.linger_ms,
            max_request_size=request_bytes_max + BATCH_OVERHEAD_BYTES,
            request_timeout_ms=settings.publish_timeout_ms,
            compression_type=None,  # records are small, and a codec would be one more dependency
        )

    async def start(self) -> None:
        """Raises ``IdempotenceRefused``."""
        try:
            await self._driver.start()
        except NO_IDEMPOTENCE as error:
            await self._driver.stop()
            if not self._idempotent:
                raise
            raise IdempotenceRefused(repr(error)) from error
        except BaseException:
            await self._driver.stop()
            raise

    @property
    def has_id(self) -> bool:
        """Whether the broker knows this producer, so that its retries duplicate nothing."""
        return self._idempotent and bool(self._driver._txn_manager.has_pid())  # noqa: SLF001

    async def send(self, topic: str, record: Record, now_ns: int) -> None:
        """Returns when every in-sync replica has it."""
        await self._driver.send_and_wait(
            topic,
            record.value,
            key_bytes(record.key),
            timestamp_ms=now_ns // MILLISECOND_NS,
            headers=list(record.headers.items()),
        )

    async def abandon(self) -> None:
        """Close without the last batches, for which the driver's ``stop`` waits as long as the broker is gone.

        Whoever waits for an acknowledgement has a limit of their own.
        """
        self._driver._closed = True  # noqa: SLF001 - there is no public way
        try:
            await self._driver._sender.close()  # noqa: SLF001
        finally:
            await self._driver.client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Of a consumer in a group. The two are called with every rebalance, before and after."""

    group: str
    instance: str | None
    revoked: Callable[[], None]
    assigned: Callable[[], None]


class _Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # the driver has no types
    def __init__(self, membership: Membership | None) -> None:
        self._membership = membership
        self.times = 0

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        self.times += 1
        if self._membership is not None:
            self._membership.revoked()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        if self._membership is not None:
            self._membership.assigned()


class TopicConsumer:
    """Reads one topic: as a member of a group, or the partitions that it is told to."""

    def __init__(
        self,
        cluster: Cluster,
        settings: KafkaSettings,
        topic: str,
        *,
        membership: Membership | None = None,
        fetch_max_wait_ms: int | None = None,
    ) -> None:
        self.topic = topic
        self._driver = AIOKafkaConsumer(
            **_connection(cluster),
            group_id=membership.group if membership else None,
            group_instance_id=membership.instance if membership else None,
            enable_auto_commit=False,  # the default commits by timer, whatever the handler does
            auto_offset_reset="earliest",  # the default loses what came before the group
            isolation_level="read_uncommitted",  # nobody writes transactions
            partition_assignment_strategy=(RoundRobinPartitionAssignor,),
            fetch_max_wait_ms=fetch_max_wait_ms or settings.fetch_max_wait_ms,
            max_poll_records=settings.buffer_records,
            request_timeout_ms=settings.request_timeout_ms,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
        )
        self._rebalances = _Rebalances(membership)
        if membership is not None:
            self._driver.subscribe([topic], listener=self._rebalances)

    def assign(self, numbers: Iterable[int]) -> None:
        """Read these partitions, for no group."""
        self._driver.assign([self._at(number) for number in numbers])

    async def start(self) -> None:
        """Returns when partitions are assigned; a group that is rebalancing keeps it waiting."""
        await self._driver.start()

    async def stop(self, *, leave: bool = True) -> None:
        """``leave`` tells the group; otherwise it finds out a session later."""
        driver = self._driver
        if not leave and driver._coordinator is not None:  # noqa: SLF001
            # The driver leaves the generation that it is in; there is no public way to stay.
            driver._coordinator.generation = NO_GENERATION  # noqa: SLF001
        try:
            await driver.stop()
        except BaseException:  # it stops halfway when the broker does not answer, and cannot be told to go on
            if driver._fetcher is not None:  # noqa: SLF001
                await driver._fetcher.close()  # noqa: SLF001
            await driver._client.close()  # noqa: SLF001
            raise

    @property
    def rebalances(self) -> int:
        """How often partitions have been taken away so far, to be given out anew."""
        return self._rebalances.times

    @property
    def assigned(self) -> list[int]:
        return [where.partition for where in self._driver.assignment()]

    async def take(self, wait_ms: int, *, only: int | None = None, most: int | None = None) -> list[Delivery]:
        """What has arrived, or arrives within ``wait_ms``, on all partitions or ``only`` one. Raises ``Unreadable``.

        Never cancel it: that breaks the driver's sense of being alive.
        """
        before = self._positions()
        partitions = () if only is None else (self._at(only),)
        try:
            found = await self._driver.getmany(*partitions, timeout_ms=wait_ms, max_records=most)
        except ValueError as error:
            await self._go_back(before)
            raise Unreadable(str(error)) from error
        return [_delivery(message) for messages in found.values() for message in messages]

    async def take_nothing(self) -> None:
        """Only show that this consumer is alive.

        Asked for a partition that nobody has, the driver hands out nothing and drops nothing it has fetched.
        """
        await self._driver.getmany(self._at(NOBODYS), timeout_ms=0)

    def _positions(self) -> dict[TopicPartition, int]:
        """Of the partitions that have one by now. The driver's own way to ask waits for the others."""
        subscription = self._driver._subscription.subscription  # noqa: SLF001
        assignment = subscription.assignment if subscription else None
        states = {where: assignment.state_value(where) for where in assignment.tps} if assignment else {}
        return {where: state.position for where, state in states.items() if state.has_valid_position}

    async def _go_back(self, before: dict[TopicPartition, int]) -> None:
        """Take again what the driver had counted as taken when it stumbled, also of other partitions."""
        partitions = list(self._driver.assignment())
        fresh = [where for where in partitions if where not in before]
        oldest = await self._driver.beginning_offsets(fresh) if fresh else {}
        for where in fresh:
            committed = await self._driver.committed(where) if self._driver._group_id else 0  # noqa: SLF001
            before[where] = max(committed or 0, oldest[where])
        for where in partitions:
            self._driver.seek(where, before[where])

    async def position(self, number: int) -> int:
        """Offset of the next record to take."""
        return int(await self._driver.position(self._at(number)))

    def seek(self, number: int, offset: int) -> None:
        self._driver.seek(self._at(number), offset)

    async def seek_to_beginning(self, numbers: Iterable[int]) -> None:
        await self._driver.seek_to_beginning(*map(self._at, numbers))

    def highwater(self, number: int) -> int | None:
        """Offset that the next record published will get, as far as the driver has heard; None: nothing, or not ours.

        Not the driver's ``end_offsets``: Tansu answers that with the last batch's first offset.
        """
        where = self._at(number)
        return self._driver.highwater(where) if where in self._driver.assignment() else None

    async def starts(self, numbers: list[int]) -> dict[int, int]:
        """Where the group goes on: what it has committed, otherwise the oldest record there is."""
        partitions = [self._at(number) for number in numbers]
        offsets = await asyncio.gather(*map(self._driver.committed, partitions))
        committed: dict[TopicPartition, int | None] = dict(zip(partitions, offsets, strict=True))
        fresh = [partition for partition, offset in committed.items() if offset is None]
        oldest = await self._driver.beginning_offsets(fresh) if fresh else {}
        return {where.partition: oldest.get(where, offset or 0) for where, offset in committed.items()}

    async def commit(self, number: int, offset: int) -> str:
        """Have the group go on at ``offset``. Returns why it was not to be: the partition has moved; empty: done."""
        try:
            await self._driver.commit({self._at(number): offset})
        except MOVED as error:
            return str(error) or type(error).__name__
        return ""

    def _at(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)


def _delivery(message: Any) -> Delivery:
    record = Record(
        key=key_text(message.key or b""),
        value=message.value or b"",
        headers={name: value or b"" for name, value in message.headers},
    )
    return Delivery(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        record=record,
        published_ns=max(0, message.timestamp) * MILLISECOND_NS,
    )
