"""One membership in a group, from joining to leaving, and the records it took and has not handed out."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Self

from shared import metrics, topics
from shared.bus import Delivery
from shared.bus.kafka_connection import Connection
from shared.bus.kafka_driver import Membership, attempt, driver_errors
from shared.bus.kafka_reading import take
from shared.bus.positions import Positions

log = logging.getLogger(__name__)


class Member:
    """The driver's coroutines run in a task that outlives the calls: cancelling them breaks its sense of being alive,
    and some of them wait for as long as the broker is gone.
    """

    def __init__(
        self, connection: Connection, topic: topics.Topic, group: str, instance: str | None, wake: Callable[[], None]
    ) -> None:
        self._settings, self._topic, self._group, self._wake = connection.settings, topic, group, wake
        self._births = connection.topics.births
        self._born = self._births[topic.name]
        self.positions = Positions(dense=not topic.compacted)
        self._buffer: deque[Delivery] = deque()
        self._assigned = asyncio.Event()
        self._known = False
        """Whether ``positions`` are those of the assignment there is."""
        self._generation = 0
        self._asking: asyncio.Task[None] | None = None
        membership = Membership(group=group, instance=instance, revoked=self._revoked, assigned=self._newly_assigned)
        self._consumer = connection.consumer(topic.name, membership=membership)

    @classmethod
    async def joined(
        cls, connection: Connection, topic: topics.Topic, group: str, instance: str | None, wake: Callable[[], None]
    ) -> Self:
        """A member with its first assignment. Raises ``Unavailable``; waits while the group is rebalancing."""
        await connection.ensure(topic)
        member = cls(connection, topic, group, instance, wake)
        try:
            with driver_errors(f"join {group} on {topic.name}"):
                await member._consumer.start()
        except BaseException:
            connection.farewells.part(member.close())
            raise
        return member

    @property
    def outlived(self) -> bool:
        """Whether the topic was created anew since: what is known of its partitions is about a log that is gone."""
        return self._births[self._topic.name] != self._born

    async def close(self) -> None:
        try:
            await self._consumer.stop(leave=self._settings.leave_on_close)
        finally:
            if self._asking is not None:
                self._asking.cancel()  # a closed driver may leave it waiting for an assignment for ever
                await asyncio.wait({self._asking})
                if not self._asking.cancelled() and self._asking.exception() is not None:
                    log.debug("asked in vain while closing: %s", self._asking.exception())

    # --- called by the driver -----------------------------------------------------------------------------------------

    def _revoked(self) -> None:
        """Everything read and not committed comes again, here or elsewhere."""
        self._assigned.clear()
        self._forget()

    def _newly_assigned(self) -> None:
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
        delivery = self._buffer.popleft()
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
                await self._consumer.take_nothing()
            else:
                self._buffer.extend(await take(self._consumer, round(wait_s * 1000)))
            await self._learn()
            self._hear()
            await self._start_over()

    async def _learn(self) -> None:
        """Where the group is on the partitions assigned, unless that is known."""
        while not self._known and self._assigned.is_set():
            generation = self._generation
            async with asyncio.timeout(self._settings.commit_timeout_ms / 1000):
                starts = await self._consumer.starts(self._consumer.assigned)
            # A commit learns, too. Whoever comes second knows less: the first one's commits are not in it.
            if generation == self._generation and not self._known:
                self.positions.assign(starts)
                self._known = True

    def _hear(self) -> None:
        for number in self.positions.owned:
            self.positions.hear(number, self._consumer.highwater(number))

    async def _start_over(self) -> None:
        now_s = asyncio.get_running_loop().time()
        lost = self.positions.went_back(now_s, self._settings.rewind_patience_ms / 1000)
        if not lost:
            return
        log.warning("%s%s: the broker has lost records, reading from the beginning", self._topic.name, lost)
        self._buffer = deque(delivery for delivery in self._buffer if delivery.partition not in lost)
        for number in lost:
            self.positions.rewind(number)
        await self._consumer.seek_to_beginning(lost)

    async def commit(self, delivery: Delivery) -> bool:
        """See the port."""
        number, offset = delivery.partition, delivery.offset
        async with attempt(f"commit {self._group} on {self._topic.name}", self._settings.commit_timeout_ms):
            await self._assigned.wait()
            await self._learn()
            if not self.positions.may_commit(number, offset):
                return False
            moved = await self._consumer.commit(number, offset + 1)
        if moved:
            log.info("%s[%d]@%d: not committed: %s", self._topic.name, number, offset, moved)
            return False
        self.positions.commit(number, offset)
        return True

    def lag(self) -> int:
        self._hear()
        return self.positions.lag()
