"""The bus on a Kafka cluster: Apache Kafka 3.9 and 4, and brokers that speak its protocol.

- ``publish`` waits for every in-sync replica. The producer is idempotent where the broker supports it, so its own
  retries neither duplicate nor reorder; an ``Unavailable`` publish may still arrive, and is published again by whoever
  waits for it, with the same event id.
- Topics come from ``shared.topics``: a missing one is created before its first use, and again when a broker that keeps
  nothing has come back empty. Nothing is created by asking for it.
- A subscription is one consumer with manual commits. The driver's coroutines run in tasks that outlive the calls, since
  cancelling them breaks its sense of being alive, and some of them wait for as long as the broker is gone.
- One watch per bus asks every ``watch_interval_ms`` whether the broker lives and has our topics. The driver itself
  keeps silent about a broker that is gone.
- The partition of a key is murmur2 of its UTF-8 bytes, as in every Kafka client.
- No error of the driver leaves this module: what may pass is ``Unavailable``, what is refused is ``Fatal``, and a
  record that is too large is ``Poison``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.partitioner import DefaultPartitioner

from shared import metrics, topics
from shared.bus import Delivery, Record, kafka_protocol, key_bytes, key_text
from shared.bus.kafka_settings import Cluster, KafkaSettings
from shared.bus.positions import Positions
from shared.clock import SystemClock
from shared.errors import Fatal, KernelEvolveError, Poison, Unavailable

log = logging.getLogger(__name__)

CLIENT_ID = "kernelevolve"
SLICE_S = 0.5
"""Longest single request for records; how late a closing or a change of the topics is noticed."""
CLOSE_S = 10.0
"""How long closing waits for the driver to say goodbye to a broker."""
HISTORY_WAIT_MS = 50
REFETCH_MS = 5_000
SETTLE_S = 0.05
"""Between two looks at topics that are being created."""
BATCH_OVERHEAD_BYTES = 1024
MILLISECOND_NS = 1_000_000
NO_GENERATION = -1
DEAD_LETTER_FACTOR = 2
"""A dead letter carries why it failed on top of the record, so its topic takes larger ones."""

partition_of = DefaultPartitioner()

REFUSED = (
    errors.TopicAuthorizationFailedError,
    errors.GroupAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
)
MOVED = (errors.CommitFailedError, errors.IllegalStateError)

DRIVER_LOGGERS = (
    "aiokafka",
    "aiokafka.conn",
    "aiokafka.cluster",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.sender",
)
REPEATED_S = 10.0


class Seldom(logging.Filter):
    """Lets one kind of message through every ``REPEATED_S``: during an outage the driver repeats itself ten times a
    second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        last_s = self._last_s.get(str(record.msg))
        if last_s is not None and record.created - last_s < REPEATED_S:
            return False
        self._last_s[str(record.msg)] = record.created
        return True


kafka_protocol.install()
for _name in DRIVER_LOGGERS:
    logging.getLogger(_name).addFilter(Seldom())


@contextmanager
def driver_errors(what: str) -> Iterator[None]:
    """The driver's errors as the project's; ``what`` names the attempt."""
    try:
        yield
    except errors.MessageSizeTooLargeError as error:
        raise Poison(f"{what}: {error}") from error
    except REFUSED as error:
        raise Fatal(f"{what}: not allowed: {error}") from error
    except (errors.KafkaError, OSError, TimeoutError) as error:
        raise Unavailable(f"{what}: {type(error).__name__}: {error}") from error


class KafkaBus:
    """See the module and the port."""

    def __init__(self, cluster: Cluster, settings: KafkaSettings | None = None) -> None:
        self._cluster = cluster
        self.settings = settings or KafkaSettings()
        self._connection: dict[str, Any] = {
            "bootstrap_servers": list(cluster.servers),
            "security_protocol": cluster.protocol,
            "ssl_context": cluster.tls,
            "sasl_mechanism": cluster.mechanism,
            "sasl_plain_username": cluster.user or None,
            "sasl_plain_password": cluster.password or None,
            "client_id": CLIENT_ID,
        }
        self._topics = _Topics(self._connection, self.settings)
        self._producer = _Producer(self._connection, self.settings, self.part)
        self._members: Counter[tuple[str, str]] = Counter()
        self._subscriptions: set[KafkaSubscription] = set()
        self._farewells: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._gone: Unavailable | None = None

    async def __aenter__(self) -> Self:
        """Opens without a broker, too: what needs one says ``Unavailable``."""
        if self._watch is not None:
            raise Fatal("the bus is open already")
        self._gone = None
        self._watch = asyncio.create_task(self._keep_watch())
        return self

    async def __aexit__(self, *exc: object) -> None:
        watch, self._watch = self._watch, None
        assert watch is not None
        watch.cancel()
        await asyncio.wait({watch})
        for subscription in self._subscriptions:
            subscription.wake()
        self.part(self._producer.close())
        self.part(self._topics.close())
        while self._farewells:
            await asyncio.wait(self._farewells)

    async def publish(self, topic: str, record: Record) -> None:
        """See the port. Raises ``Fatal`` for a topic that is not in ``shared.topics``, ``Poison`` for a record above
        ``record_bytes_max``.
        """
        self.check_open()
        row = _describe(topic)
        limit = self.settings.record_bytes_max * (DEAD_LETTER_FACTOR if _is_dead_letters(topic) else 1)
        size = _size(record)
        if size > limit:
            raise Poison(f"publish to {topic}: {size:,} bytes, the limit is {limit:,}")
        self.check_reachable()
        await self._topics.ensure((row,))
        try:
            await self._producer.send(topic, record)
        except Unavailable:
            self._topics.doubt()
            raise

    def subscribe(self, topic: str, group: str) -> KafkaSubscription:
        """See the port. Raises ``Fatal`` when the topic is not in ``shared.topics``."""
        row = _describe(topic)
        self._members[topic, group] += 1
        number = self._members[topic, group] - 1
        return KafkaSubscription(self, row, group, f"{self.settings.instance_id}.{topic}#{number}")

    async def history(self, topic: str, key: str | None = None) -> AsyncIterator[Delivery]:
        """See the port. A key is looked for on its own partition, unless the topic has other partitions than the table
        says: then its records may lie on any.
        """
        self.check_open()
        row = _describe(topic)
        count = await self.ensure(row)
        numbers = list(range(count))
        if key is not None and count == row.partitions:
            numbers = [partition_of(key_bytes(key), numbers, numbers)]
        async for delivery in self._read(topic, [TopicPartition(topic, number) for number in numbers]):
            if key is None or delivery.record.key == key:
                yield delivery

    async def ping(self) -> None:
        """See the port."""
        self.check_open()
        await self._topics.ping()
        self._gone = None

    async def ensure_topics(self, names: Iterable[str]) -> None:
        """Create those of ``names`` that are missing. Raises ``Unavailable``, or ``Fatal`` for an unknown name."""
        self.check_open()
        await self._topics.ensure([_describe(name) for name in names])

    # --- for subscriptions --------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises ``Fatal`` unless the bus is open."""
        if self._watch is None:
            raise Fatal("the bus is closed")

    def check_reachable(self) -> None:
        """Raises ``Unavailable`` while the watch gets no answer."""
        if self._gone is not None:
            raise Unavailable(str(self._gone))

    async def ensure(self, row: topics.Topic) -> int:
        """Create the topic if it is missing. Returns its number of partitions."""
        await self._topics.ensure((row,))
        return self._topics.partitions[row.name]

    def birth(self, topic: str) -> int:
        """Grows each time the topic is created anew under its readers."""
        return self._topics.births[topic]

    def consumer(self, **options: Any) -> AIOKafkaConsumer:
        """A consumer that is not started: nothing is committed unless told to, and nothing skipped at first."""
        settings = self.settings
        defaults: dict[str, Any] = {
            "enable_auto_commit": False,  # the default commits by timer, whatever the handler does
            "auto_offset_reset": "earliest",  # the default loses what came before the group
            "fetch_max_wait_ms": settings.fetch_max_wait_ms,
            "max_poll_records": settings.buffer_records,
            "request_timeout_ms": settings.request_timeout_ms,
            "isolation_level": "read_uncommitted",  # nobody writes transactions
        }
        return AIOKafkaConsumer(**self._connection, **{**defaults, **options})

    def join(self, subscription: KafkaSubscription) -> None:
        self._subscriptions.add(subscription)

    def leave(self, subscription: KafkaSubscription) -> None:
        self._subscriptions.discard(subscription)

    def part(self, farewell: Awaitable[None]) -> asyncio.Task[None]:
        """Close something in the background, for ``CLOSE_S`` at most; closing the bus waits for it."""

        async def say() -> None:
            try:
                async with asyncio.timeout(CLOSE_S):
                    await farewell
            except (errors.KafkaError, OSError, TimeoutError) as error:
                log.info("closed without the broker's answer: %r", error)

        task = asyncio.create_task(say())
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)
        return task

    # ------------------------------------------------------------------------------------------------------------------

    async def _keep_watch(self) -> None:
        while True:
            try:
                await self._topics.look_again()
            except Unavailable as error:
                if self._gone is None:
                    log.warning("%s", error)
                self._gone = error
            except Fatal as error:  # one topic cannot be made; whoever uses it is told the same
                log.error("%s", error)  # noqa: TRY400
            else:
                if self._gone is not None:
                    log.warning("the broker answers again")
                self._gone = None
            for subscription in self._subscriptions if self._gone else ():
                subscription.wake()
            await asyncio.sleep(self.settings.watch_interval_ms / 1000)

    async def _read(self, topic: str, partitions: list[TopicPartition]) -> AsyncIterator[Delivery]:
        consumer = self.consumer(group_id=None, fetch_max_wait_ms=min(HISTORY_WAIT_MS, self.settings.fetch_max_wait_ms))
        consumer.assign(partitions)
        what = f"history of {topic}"
        try:
            with driver_errors(what):
                async with asyncio.timeout(self.settings.request_timeout_ms / 1000):
                    await consumer.start()
            ends: dict[TopicPartition, int] = {}
            quiet_since_s = asyncio.get_running_loop().time()
            while not await _read_up_to(consumer, partitions, ends):
                self.check_open()
                with driver_errors(what):
                    found = await _messages(consumer, HISTORY_WAIT_MS)
                for partition in partitions:
                    # Not ``end_offsets``: Tansu answers it with the last batch's first offset.
                    highwater = consumer.highwater(partition)
                    if highwater is not None:
                        ends.setdefault(partition, highwater)
                now_s = asyncio.get_running_loop().time()
                quiet_since_s = now_s if found else quiet_since_s
                if now_s - quiet_since_s > self.settings.publish_timeout_ms / 1000:
                    raise Unavailable(f"{what}: no answer")
                for message in found:
                    if message.offset < ends[TopicPartition(topic, message.partition)]:
                        yield _delivery(message)
        finally:
            await asyncio.wait({self.part(consumer.stop())})


async def _read_up_to(
    consumer: AIOKafkaConsumer, partitions: list[TopicPartition], ends: dict[TopicPartition, int]
) -> bool:
    if len(ends) < len(partitions):
        return False
    return all([await consumer.position(partition) >= ends[partition] for partition in partitions])


class _Topics:
    """The topics of the cluster as far as this process uses them."""

    def __init__(self, connection: dict[str, Any], settings: KafkaSettings) -> None:
        self._connection, self._settings = connection, settings
        self._admin: AIOKafkaAdminClient | None = None
        self._turn = asyncio.Lock()
        self._used: dict[str, topics.Topic] = {}
        self.partitions: dict[str, int] = {}
        """How many a topic has; only what the broker had when last asked."""
        self._seen: set[str] = set()
        self.births: Counter[str] = Counter()

    async def ensure(self, rows: Iterable[topics.Topic]) -> None:
        """Raises ``Unavailable``."""
        missing = [row for row in rows if row.name not in self.partitions]
        if missing:
            self._used.update({row.name: row for row in missing})
            await self._settle(missing)

    async def look_again(self) -> None:
        """Ask the broker for every topic in use, and create what it has lost. Raises ``Unavailable``."""
        await self._settle(list(self._used.values()))

    def doubt(self) -> None:
        """Ask the broker about every topic before it is used again."""
        self.partitions.clear()

    async def ping(self) -> None:
        """Raises ``Unavailable``."""
        await self._ask("ping", lambda admin: admin.describe_topics([]))

    async def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()

    async def _settle(self, rows: list[topics.Topic]) -> None:
        """Create what is missing of ``rows`` and wait until all of them have leaders."""
        names = [row.name for row in rows]
        deadline_s = asyncio.get_running_loop().time() + self._settings.publish_timeout_ms / 1000
        while True:
            found = await self._describe(names)
            absent = [row for row in rows if row.name not in found]
            if not absent and all(found.values()):
                break
            if asyncio.get_running_loop().time() > deadline_s:
                raise Unavailable(f"topics {', '.join(names)}: some partitions have no leader")
            if absent:
                await self._create(absent)
            await asyncio.sleep(SETTLE_S)
        for row in rows:
            self._note(row, found[row.name])

    def _note(self, row: topics.Topic, partitions: int) -> None:
        if partitions < row.partitions and self.partitions.get(row.name) != partitions:
            few = "topic %s has %d partitions, not %d: fewer members than planned can share it"
            log.warning(few, row.name, partitions, row.partitions)
        self.partitions[row.name] = partitions
        self._seen.add(row.name)

    async def _describe(self, names: list[str]) -> dict[str, int]:
        """Partitions of those of ``names`` that exist; 0 while some of them have no leader."""
        answer = await self._ask("describe topics", lambda admin: admin.describe_topics(names))
        found = {}
        for topic in answer:
            error = errors.for_code(topic["error_code"])
            if error in REFUSED:
                raise Fatal(f"topic {topic['topic']}: not allowed")
            if error is errors.UnknownTopicOrPartitionError:
                continue
            led = [partition["leader"] >= 0 for partition in topic["partitions"]]
            found[topic["topic"]] = len(led) if all(led) else 0
        return found

    async def _create(self, rows: list[topics.Topic]) -> None:
        new = [self._new(row) for row in rows]
        try:
            answer = await self._ask("create topics", lambda admin: admin.create_topics(new))
        except AttributeError as nobody:  # the driver looks for the address of a controller that is not elected yet
            raise Unavailable("create topics: the cluster has no controller") from nobody
        for name, code, *why in answer.topic_errors:
            error = errors.for_code(code)
            if error is errors.NoError:
                self._count_birth(name)
                continue
            if error is errors.TopicAlreadyExistsError:
                continue
            if error in (errors.RequestTimedOutError, errors.NotControllerError):
                raise Unavailable(f"create topic {name}: {error.__name__}")
            raise Fatal(f"create topic {name}: {error.__name__} {why}")

    def _count_birth(self, name: str) -> None:
        if name in self._seen:
            log.warning("the broker had lost topic %s, it is created again", name)
            self.births[name] += 1

    def _new(self, row: topics.Topic) -> NewTopic:
        config = {"retention.ms": str(row.retention_ms), "cleanup.policy": "compact" if row.compacted else "delete"}
        if _is_dead_letters(row.name):
            config["max.message.bytes"] = str(self._settings.record_bytes_max * DEAD_LETTER_FACTOR)
        new = NewTopic(row.name, row.partitions, 1, topic_configs=config)
        new.replication_factor = self._settings.replication  # the constructor refuses -1, brokers since 2.4 do not
        return new

    async def _ask(self, what: str, request: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        """One request at a time. A connection that failed is made anew from the bootstrap servers."""
        async with self._turn:
            try:
                with driver_errors(what):
                    async with asyncio.timeout(self._settings.watch_timeout_ms / 1000):
                        if self._admin is None:
                            self._admin = await self._connect()
                        return await request(self._admin)
            except KernelEvolveError:
                await self.close()
                raise

    async def _connect(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**self._connection, request_timeout_ms=self._settings.watch_timeout_ms)
        try:
            await admin.start()
        except BaseException:
            await admin.close()
            raise
        return admin


class _Producer:
    """The producer of a bus, replaced when it failed: an idempotent one never gives up a batch by itself."""

    def __init__(
        self, connection: dict[str, Any], settings: KafkaSettings, part: Callable[[Awaitable[None]], object]
    ) -> None:
        self._connection, self._settings, self._part = connection, settings, part
        self._clock = SystemClock()
        self._driver: AIOKafkaProducer | None = None
        self._turn = asyncio.Lock()
        self._idempotent = True

    async def send(self, topic: str, record: Record) -> None:
        """Raises ``Unavailable``, ``Poison`` or ``Fatal``."""
        what = f"publish to {topic}"
        driver: AIOKafkaProducer | None = None
        try:
            with driver_errors(what):
                async with asyncio.timeout(self._settings.publish_timeout_ms / 1000):
                    driver = await self._started()
                    await driver.send_and_wait(
                        topic,
                        record.value,
                        key_bytes(record.key),
                        timestamp_ms=self._clock.now_ns() // MILLISECOND_NS,
                        headers=list(record.headers.items()),
                    )
        except Unavailable:
            self._drop(driver)
            raise

    async def close(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            await _abandon(driver)

    async def _started(self) -> AIOKafkaProducer:
        async with self._turn:
            if self._driver is None:
                self._driver = await self._start()
            return self._driver

    async def _start(self) -> AIOKafkaProducer:
        if self._idempotent:
            driver = self._make(idempotent=True)
            try:
                await _start(driver)
            except (errors.BrokerResponseError, errors.IncompatibleBrokerVersion, NotImplementedError) as error:
                log.info("the broker refuses an idempotent producer (%r): its retries may duplicate records", error)
                self._idempotent = False
            else:
                return driver
        driver = self._make(idempotent=False)
        await _start(driver)
        return driver

    def _make(self, *, idempotent: bool) -> AIOKafkaProducer:
        settings = self._settings
        return AIOKafkaProducer(
            **self._connection,
            acks="all",  # the default waits for the leader alone
            enable_idempotence=idempotent,
            partitioner=partition_of,
            linger_ms=settings.linger_ms,
            max_request_size=settings.record_bytes_max * DEAD_LETTER_FACTOR + BATCH_OVERHEAD_BYTES,
            request_timeout_ms=settings.publish_timeout_ms,
            compression_type=None,  # records are small, and a codec would be one more dependency
        )

    def _drop(self, driver: AIOKafkaProducer | None) -> None:
        """Forget a producer and what it still holds, so that an outage does not pile up batches."""
        if driver is not None and driver is self._driver:
            self._driver = None
            self._part(_abandon(driver))


async def _start(driver: AIOKafkaProducer) -> None:
    try:
        await driver.start()
    except BaseException:
        await driver.stop()
        raise


async def _abandon(driver: AIOKafkaProducer) -> None:
    """Close a producer without its last batches, for which ``stop`` waits as long as the broker is gone.

    Whoever waits for an acknowledgement has a limit of their own.
    """
    driver._closed = True  # noqa: SLF001 - there is no public way
    try:
        await driver._sender.close()  # noqa: SLF001
    finally:
        await driver.client.close()


class KafkaSubscription:
    """A member of a group; see the port for what it promises."""

    def __init__(self, bus: KafkaBus, topic: topics.Topic, group: str, instance: str) -> None:
        self._bus, self._topic, self._group = bus, topic, group
        self._instance = instance if bus.settings.instance_id else None
        self._news = asyncio.Event()
        self._open = False
        self._paused = False
        self._member: _Member | None = None
        self._joining: asyncio.Task[_Member] | None = None
        self._farewell: asyncio.Task[None] | None = None
        self._gaps = 0

    @property
    def gaps(self) -> int:
        """Records missing in what was read since the subscription was made; see ``Positions.gaps``."""
        return self._gaps + (self._member.positions.gaps if self._member else 0)

    async def __aenter__(self) -> Self:
        """Joins the group. Raises ``Unavailable`` while there is no broker to join at."""
        if self._open:
            raise Fatal(f"{self._group} on {self._topic.name} is open already")
        self._bus.check_open()
        self._paused = False
        self._open = True
        self._bus.join(self)
        try:
            await asyncio.wait({self._join()}, timeout=self._bus.settings.request_timeout_ms / 1000)
            joined = self._joined() is not None
        except BaseException:
            await self._close()
            raise
        if not joined:
            await self._close()
            raise Unavailable(f"join {self._group} on {self._topic.name}: no answer")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._check_open()
        await self._close()

    async def poll(self, wait_s: float) -> Delivery | None:
        """See the port. Raises ``Fatal`` on a subscription or bus that is closed."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + wait_s
        await asyncio.sleep(0)  # a full buffer must not starve the rest of the loop
        late = asked = False
        while True:
            self._news.clear()
            self._check_open()
            self._bus.check_reachable()
            member = self._current()
            delivery = self._take(member)
            if delivery is not None or late:
                return delivery
            if member is not None and not (self._paused and asked):
                member.ask(paused=self._paused, wait_s=min(SLICE_S, max(0.0, deadline_s - loop.time())))
                asked = True
            late = not await self._wait_for_news(deadline_s)

    def _current(self) -> _Member | None:
        """The member, unless it is still joining, which this starts when due. Raises what joining raised."""
        member = self._joined()
        if member is not None and member.birth != self._bus.birth(self._topic.name):
            log.warning("%s on %s: the topic is a new one, joining again", self._group, self._topic.name)
            self._discard()
            member = None
        if member is None:
            self._join()
        return member

    def _take(self, member: _Member | None) -> Delivery | None:
        try:
            return member.take(paused=self._paused) if member else None
        except Unavailable:
            self._discard()
            raise

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.wake()

    async def commit(self, delivery: Delivery) -> bool:
        """See the port. Raises ``Fatal`` when the subscription is closed."""
        self._check_open()
        member = self._member
        return member is not None and await member.commit(delivery)

    def lag(self) -> int:
        """See the port. Raises ``Fatal`` when the subscription is closed."""
        self._check_open()
        return self._member.lag() if self._member else 0

    def wake(self) -> None:
        """Make a waiting ``poll`` look again."""
        self._news.set()

    async def _wait_for_news(self, deadline_s: float) -> bool:
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _check_open(self) -> None:
        if not self._open:
            raise Fatal(f"{self._group} on {self._topic.name} is not open")
        self._bus.check_open()

    def _join(self) -> asyncio.Task[_Member]:
        """The attempt to join that is in progress; a new one if there is none."""
        if self._joining is None:
            self._joining = asyncio.create_task(self._join_after_farewell())
            self._joining.add_done_callback(lambda _: self.wake())
        return self._joining

    async def _join_after_farewell(self) -> _Member:
        if self._farewell is not None:
            await asyncio.wait({self._farewell})
        return await _Member.joined(self._bus, self._topic, self._group, self._instance, self.wake)

    def _joined(self) -> _Member | None:
        """The member, if it has joined by now. Raises what joining raised."""
        if self._joining is not None and self._joining.done():
            joining, self._joining = self._joining, None
            self._member = joining.result()
        return self._member

    def _discard(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            self._gaps += member.positions.gaps
            self._farewell = self._bus.part(member.close())

    async def _close(self) -> None:
        self._open = False
        self._bus.leave(self)
        joining, self._joining = self._joining, None
        if joining is not None:
            joining.cancel()
            await asyncio.wait({joining})
            if not joining.cancelled() and joining.exception() is None:
                self._member = joining.result()
        member, self._member = self._member, None
        if member is not None:
            self._gaps += member.positions.gaps
            await asyncio.wait({self._bus.part(member.close())})
        self.wake()


class _Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the driver has no types
    """One consumer of the driver, from joining to leaving, and the records it took and has not handed out."""

    def __init__(
        self, bus: KafkaBus, topic: topics.Topic, group: str, instance: str | None, wake: Callable[[], None]
    ) -> None:
        settings = bus.settings
        self._settings, self._topic, self._group, self._wake = settings, topic, group, wake
        self.birth = bus.birth(topic.name)
        self.positions = Positions(dense=not topic.compacted)
        self._buffer: deque[Any] = deque()
        self._assigned = asyncio.Event()
        self._known = False
        self._generation = 0
        self._asking: asyncio.Task[None] | None = None
        self._consumer = bus.consumer(
            group_id=group,
            group_instance_id=instance,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            partition_assignment_strategy=(RoundRobinPartitionAssignor,),
        )
        self._consumer.subscribe([topic.name], listener=self)

    @classmethod
    async def joined(
        cls, bus: KafkaBus, topic: topics.Topic, group: str, instance: str | None, wake: Callable[[], None]
    ) -> Self:
        """A member with its first assignment. Raises ``Unavailable``; waits while the group is rebalancing."""
        await bus.ensure(topic)
        member = cls(bus, topic, group, instance, wake)
        try:
            with driver_errors(f"join {group} on {topic.name}"):
                await member._consumer.start()
        except BaseException:
            bus.part(member.close())
            raise
        return member

    async def close(self) -> None:
        if not self._settings.leave_on_close and self._consumer._coordinator is not None:  # noqa: SLF001
            # The driver leaves the generation that it is in; there is no public way to stay.
            self._consumer._coordinator.generation = NO_GENERATION  # noqa: SLF001
        await self._consumer.stop()
        if self._asking is not None:
            self._asking.cancel()  # a closed driver may leave it waiting for an assignment for ever
            await asyncio.wait({self._asking})

    # --- called by the driver -----------------------------------------------------------------------------------------

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        """Everything read and not committed comes again, here or elsewhere."""
        self._assigned.clear()
        self._forget()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:  # noqa: ARG002
        self._forget()
        self._assigned.set()
        self._wake()

    def _forget(self) -> None:
        self._generation += 1
        self._known = False
        self._buffer.clear()
        self.positions.revoke()

    # ------------------------------------------------------------------------------------------------------------------

    def take(self, *, paused: bool) -> Delivery | None:
        """The next record. Raises ``Unavailable`` when the driver has given up, ``Fatal`` when the broker refuses."""
        if self._asking is not None and self._asking.done():
            asking, self._asking = self._asking, None
            asking.result()
        if paused or not self._known or not self._buffer:
            return None
        delivery = _delivery(self._buffer.popleft())
        missing = self.positions.hand(delivery.partition, delivery.offset)
        if missing:
            where = f"{delivery.topic}[{delivery.partition}]@{delivery.offset}"
            log.warning("%s: %d records before it are missing", where, missing)
            metrics.OFFSET_GAPS.inc(delivery.topic, by=missing)
        return delivery

    def ask(self, *, paused: bool, wait_s: float) -> None:
        """Ask the driver for records unless it is being asked: that is also what keeps the member alive."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(paused or bool(self._buffer), wait_s))
            self._asking.add_done_callback(lambda _: self._wake())

    async def _ask(self, nothing: bool, wait_s: float) -> None:
        with driver_errors(f"{self._group} on {self._topic.name}"):
            if nothing:
                # Asked for a partition that nobody has, the driver hands out nothing and drops nothing it has fetched.
                await self._consumer.getmany(TopicPartition(self._topic.name, -1), timeout_ms=0)
            else:
                self._buffer.extend(await _messages(self._consumer, round(wait_s * 1000)))
            await self._learn()
            self._hear()
            await self._start_over()

    async def _learn(self) -> None:
        """Where the group is on the partitions assigned, unless that is known."""
        while not self._known and self._assigned.is_set():
            generation = self._generation
            partitions = list(self._consumer.assignment())
            async with asyncio.timeout(self._settings.commit_timeout_ms / 1000):
                offsets = await asyncio.gather(*map(self._consumer.committed, partitions))
                committed: dict[TopicPartition, int | None] = dict(zip(partitions, offsets, strict=True))
                fresh = [partition for partition, offset in committed.items() if offset is None]
                oldest = await self._consumer.beginning_offsets(fresh) if fresh else {}
            if generation == self._generation:
                starts = {where.partition: oldest.get(where, offset or 0) for where, offset in committed.items()}
                self.positions.assign(starts)
                self._known = True

    def _hear(self) -> None:
        owned = self.positions.owned
        for partition in self._consumer.assignment():
            if partition.partition in owned:
                self.positions.hear(partition.partition, self._consumer.highwater(partition))

    async def _start_over(self) -> None:
        now_s = asyncio.get_running_loop().time()
        for number in self.positions.went_back(now_s, self._settings.rewind_patience_ms / 1000):
            partition = TopicPartition(self._topic.name, number)
            log.warning("%s[%d]: the broker has lost records, reading from the beginning", self._topic.name, number)
            self._buffer = deque(message for message in self._buffer if message.partition != number)
            self.positions.rewind(number)
            await self._consumer.seek_to_beginning(partition)

    async def commit(self, delivery: Delivery) -> bool:
        """See the port."""
        partition = TopicPartition(delivery.topic, delivery.partition)
        with driver_errors(f"commit {self._group} on {self._topic.name}"):
            async with asyncio.timeout(self._settings.commit_timeout_ms / 1000):
                await self._assigned.wait()
                await self._learn()
                if not self.positions.may_commit(delivery.partition, delivery.offset):
                    return False
                try:
                    await self._consumer.commit({partition: delivery.offset + 1})
                except MOVED as error:
                    log.info("%s[%d]@%d: not committed: %s", *partition, delivery.offset, error)
                    return False
        self.positions.commit(delivery.partition, delivery.offset)
        return True

    def lag(self) -> int:
        self._hear()
        return self.positions.lag()


def _describe(name: str) -> topics.Topic:
    try:
        return topics.describe(name)
    except KeyError as error:
        raise Fatal(f"no topic {name!r} in shared.topics") from error


def _is_dead_letters(topic: str) -> bool:
    return topic.endswith(topics.DEAD_LETTER_SUFFIX)


def _size(record: Record) -> int:
    """Bytes of the record on the wire, but for a few of framing."""
    headers = sum(len(name.encode()) + len(value) for name, value in record.headers.items())
    return len(key_bytes(record.key)) + len(record.value) + headers


async def _messages(consumer: AIOKafkaConsumer, wait_ms: int) -> list[Any]:
    """What has arrived, or arrives within ``wait_ms``."""
    try:
        found = await consumer.getmany(timeout_ms=wait_ms)
    except ValueError as error:
        return await _around_unreadable(consumer, error)
    return [message for messages in found.values() for message in messages]


async def _around_unreadable(consumer: AIOKafkaConsumer, error: ValueError) -> list[Any]:
    """What comes before a record that the driver cannot read (a header's name is not UTF-8), and a stand-in for it.

    The driver does not say which record it is, and would stumble over it for ever: it is looked for one by one.
    """
    found: list[Any] = []
    for partition in consumer.assignment():
        while (offset := await consumer.position(partition)) < (consumer.highwater(partition) or 0):
            try:
                one = await consumer.getmany(partition, timeout_ms=REFETCH_MS, max_records=1)
            except ValueError as reason:
                log.error("%s[%d]@%d cannot be read: %s", *partition, offset, reason)  # noqa: TRY400 - no bug of ours
                consumer.seek(partition, offset + 1)
                headers = (("unreadable", str(reason).encode()),)
                stand_in = _StandIn(
                    topic=partition.topic, partition=partition.partition, offset=offset, headers=headers
                )
                return [*found, stand_in]
            if not one:
                break
            found.extend(one[partition])
    raise Fatal(f"the driver failed and no record is to blame: {error!r}") from error


class _StandIn(NamedTuple):
    """In the place of a record that cannot be read."""

    topic: str
    partition: int
    offset: int
    headers: tuple[tuple[str, bytes], ...]
    key: bytes = b""
    value: bytes = b""
    timestamp: int = 0


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
