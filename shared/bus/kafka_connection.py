"""What the parts of one bus share: its topics, its farewells, and the watch over the broker.

The driver itself keeps silent about a broker that is gone, so the watch asks every ``watch_interval_ms`` whether it
lives and has our topics.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from shared import topics
from shared.bus.kafka_driver import Membership, TopicConsumer
from shared.bus.kafka_farewells import Farewells
from shared.bus.kafka_settings import Cluster, KafkaSettings
from shared.bus.kafka_topics import Topics
from shared.errors import Fatal, Unavailable

log = logging.getLogger(__name__)


class Reader(Protocol):
    """A subscription that is open."""

    def wake(self) -> None:
        """Make a waiting ``poll`` look again."""
        ...

    async def close(self) -> None: ...


class Connection:
    """Open between ``open`` and ``close``, broker or not: what needs one says ``Unavailable``."""

    def __init__(self, cluster: Cluster, settings: KafkaSettings) -> None:
        self.cluster, self.settings = cluster, settings
        self.topics = Topics(cluster, settings, self.check_open)
        self.farewells = Farewells()
        self.readers: set[Reader] = set()
        self._watch: asyncio.Task[None] | None = None
        self._gone: Unavailable | None = None
        self._refused = ""

    def open(self) -> None:
        """Raises ``Fatal`` when it is open."""
        if self._watch is not None:
            raise Fatal("the bus is open already")
        self._gone = None
        self._watch = asyncio.create_task(self._keep_watch())
        self._watch.add_done_callback(lambda _: self._wake())

    async def close(self) -> None:
        """Readers included, that their owners have left open: they would stay members for ever."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait({watch})
        await asyncio.gather(*(reader.close() for reader in self.readers))
        self.farewells.part(self.topics.close())
        await self.farewells.wait()

    def check_open(self) -> None:
        """Raises ``Fatal`` unless the bus is open and watched."""
        if self._watch is None:
            raise Fatal("the bus is closed")
        if self._watch.done() and not self._watch.cancelled():
            raise Fatal("the watch over the broker has failed") from self._watch.exception()

    def check_reachable(self) -> None:
        """Raises ``Unavailable`` while the watch gets no answer."""
        if self._gone is not None:
            raise Unavailable(str(self._gone))

    async def ping(self) -> None:
        """Raises ``Unavailable`` unless the broker answers."""
        await self.topics.ping()
        self._gone = None

    async def ensure(self, row: topics.Topic) -> int:
        """Create the topic if it is missing. Returns its number of partitions."""
        await self.topics.ensure((row,))
        return self.topics.partitions[row.name]

    def consumer(
        self, topic: str, *, membership: Membership | None = None, fetch_max_wait_ms: int | None = None
    ) -> TopicConsumer:
        """One that is not started."""
        return TopicConsumer(
            self.cluster, self.settings, topic, membership=membership, fetch_max_wait_ms=fetch_max_wait_ms
        )

    async def _keep_watch(self) -> None:
        while True:
            await self._look()
            if self._gone is not None:
                self._wake()
            await asyncio.sleep(self.settings.watch_interval_ms / 1000)

    async def _look(self) -> None:
        try:
            await self.topics.look_again()
        except Unavailable as error:
            if self._gone is None:
                log.warning("%s", error)
            self._gone = error
            return
        except Fatal as error:  # one topic cannot be made; whoever uses it is told the same
            if str(error) != self._refused:
                log.error("%s", error)  # noqa: TRY400
            self._refused = str(error)
        else:
            self._refused = ""
        if self._gone is not None:
            log.warning("the broker answers again")
        self._gone = None

    def _wake(self) -> None:
        for reader in self.readers:
            reader.wake()
