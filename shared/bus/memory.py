"""The bus inside one process, with Kafka's contract, so that nothing learned here is false in a cluster.

- A topic is a fixed number of partitions (``shared.topics``), each a log of bytes; a record goes to the partition its
  key hashes to, so order is kept per key.
- A group's committed offsets belong to the bus: a member that goes away without committing, for whatever reason, leaves
  the record to whoever owns the partition next. A group that subscribes late starts at the oldest record kept.
- The partitions of a topic are divided among the members of a group; a member that joins or leaves makes all of them
  start over from the committed offsets, so a record in flight may be delivered twice, as in a cluster.
- Logs are bounded. A full log first drops records that every group with members has committed; if none can go,
  ``publish`` raises ``BusFull`` (a ``Retryable``) rather than wait, because the publisher may be the very consumer it
  waits for. What nobody reads now is dropped oldest first, as retention does; a group without members protects nothing.

Unlike a broker's, this log dies with its process: after a restart, who owns the journal publishes again what was not
answered. Everything runs on one event loop; nothing here is thread-safe.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Self

from shared import topics
from shared.bus import Delivery, Record, key_bytes
from shared.bus.partition import Partition
from shared.clock import Clock, SystemClock
from shared.errors import Fatal, Retryable

RECORDS_MAX = 10_000
"""Records kept per partition."""


class BusFull(Retryable):
    """A partition is full of records that some group has not committed."""


class _Group:
    """One consumer group on one topic: its committed offsets and who owns what."""

    def __init__(self, partitions: int) -> None:
        self.committed = [0] * partitions
        self.members: list[MemorySubscription] = []

    def rebalance(self) -> None:
        """Deal the partitions out, in order of joining; every member starts over from the committed offsets."""
        for rank, member in enumerate(self.members):
            owned = range(rank, len(self.committed), len(self.members))
            member.assign({partition: self.committed[partition] for partition in owned})


class _Topic:
    """The logs of one topic and the groups that read it."""

    def __init__(self, name: str, records_max: int) -> None:
        row = topics.describe(name)
        self.name = name
        self._records_max = records_max
        self.partitions = [Partition(records_max=records_max, compacted=row.compacted) for _ in range(row.partitions)]
        self.groups: dict[str, _Group] = {}

    def append(self, record: Record, published_ns: int) -> None:
        index = zlib.crc32(key_bytes(record.key)) % len(self.partitions)
        log = self.partitions[index]
        reading = (group for group in self.groups.values() if group.members)
        consumed = min((group.committed[index] for group in reading), default=log.end)
        if not log.make_room(consumed):
            raise BusFull(f"{self.name}[{index}] holds {self._records_max} records that are not consumed yet")
        log.append(record, published_ns)
        for group in self.groups.values():
            for member in group.members:
                member.wake()


class MemorySubscription:
    """A member of a group; see the port for what it promises."""

    def __init__(self, bus: MemoryBus, topic: _Topic, group: str) -> None:
        self._bus, self._topic, self._group_name = bus, topic, group
        self._positions: dict[int, int] = {}
        self._turn: list[int] = []
        self._news = asyncio.Event()
        self._paused = False
        self._group: _Group | None = None

    async def __aenter__(self) -> Self:
        if self._group is not None:
            raise Fatal(f"{self._group_name} on {self._topic.name} is open already")
        self._bus.check_open()
        self._group = self._topic.groups.setdefault(self._group_name, _Group(len(self._topic.partitions)))
        self._paused = False
        self._group.members.append(self)
        self._group.rebalance()
        return self

    async def __aexit__(self, *exc: object) -> None:
        group, self._group = self._member(), None
        self._positions, self._turn = {}, []
        group.members.remove(self)
        group.rebalance()
        self.wake()

    async def poll(self, wait_s: float) -> Delivery | None:
        """See the port. Raises ``Fatal`` on a subscription or bus that is closed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        await asyncio.sleep(0)  # a full log must not starve the rest of the loop
        while True:
            self._member()
            self._bus.check_open()
            delivery = None if self._paused else self._next()
            if delivery is not None:
                return delivery
            self._news.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                return None

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.wake()

    async def commit(self, delivery: Delivery) -> bool:
        """See the port. Raises ``Fatal`` when the subscription is closed."""
        group = self._member()
        mine = delivery.partition in self._positions
        if not mine or delivery.offset + 1 < group.committed[delivery.partition]:
            return False
        group.committed[delivery.partition] = delivery.offset + 1
        return True

    def lag(self) -> int:
        """See the port. Raises ``Fatal`` when the subscription is closed."""
        group = self._member()
        return sum(self._topic.partitions[owned].end - group.committed[owned] for owned in self._positions)

    def assign(self, positions: dict[int, int]) -> None:
        """Own exactly these partitions, from these offsets on. Called by the group."""
        self._positions, self._turn = positions, list(positions)
        self.wake()

    def wake(self) -> None:
        """Make a waiting ``poll`` look again."""
        self._news.set()

    def _next(self) -> Delivery | None:
        for _ in range(len(self._turn)):
            partition = self._turn.pop(0)  # each partition in turn, so that a busy one hides no other
            self._turn.append(partition)
            found = self._topic.partitions[partition].read(self._positions[partition])
            if found is not None:
                self._positions[partition] = found[0] + 1
                return _delivery(self._topic.name, partition, *found)
        return None

    def _member(self) -> _Group:
        if self._group is None:
            raise Fatal(f"{self._group_name} on {self._topic.name} is not open")
        return self._group


class MemoryBus:
    """See the module."""

    def __init__(self, records_max: int = RECORDS_MAX, clock: Clock | None = None) -> None:
        self._records_max, self._clock = records_max, clock or SystemClock()
        self._topics: dict[str, _Topic] = {}
        self._open = False

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._open = False
        for topic in self._topics.values():
            for group in topic.groups.values():
                for member in group.members:
                    member.wake()

    async def publish(self, topic: str, record: Record) -> None:
        """See the port. Raises ``Fatal`` when the bus is closed or the topic unknown, ``BusFull`` when it is full."""
        self.check_open()
        self._find(topic).append(record, self._clock.now_ns())

    def subscribe(self, topic: str, group: str) -> MemorySubscription:
        """See the port. Raises ``Fatal`` when the topic is not in ``shared.topics``."""
        return MemorySubscription(self, self._find(topic), group)

    async def history(self, topic: str, key: str | None = None) -> AsyncIterator[Delivery]:
        """See the port. Raises ``Fatal`` as ``publish`` does."""
        self.check_open()
        for index, log in enumerate(self._find(topic).partitions):
            end, position = log.end, 0
            while (found := log.read(position)) is not None and found[0] < end:
                position = found[0] + 1
                if key is None or found[2].key == key:
                    yield _delivery(topic, index, *found)

    async def ping(self) -> None:
        """See the port. Raises ``Fatal`` when the bus is closed."""
        self.check_open()

    def check_open(self) -> None:
        """Raises ``Fatal`` unless the bus is open."""
        if not self._open:
            raise Fatal("the bus is closed")

    def _find(self, name: str) -> _Topic:
        if name not in self._topics:
            try:
                self._topics[name] = _Topic(name, self._records_max)
            except KeyError as error:
                raise Fatal(f"no topic {name!r} in shared.topics") from error
        return self._topics[name]


def _delivery(topic: str, partition: int, offset: int, published_ns: int, record: Record) -> Delivery:
    return Delivery(topic=topic, partition=partition, offset=offset, record=record, published_ns=published_ns)
