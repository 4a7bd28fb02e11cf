"""The topics of a cluster as far as this process uses them, created as ``shared.topics`` says.

Nothing is created by asking for it. A topic that a broker has lost is created again, and its readers are told.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from shared import topics
from shared.bus.kafka_driver import Admin, NewTopic, attempt
from shared.bus.kafka_settings import Cluster, KafkaSettings
from shared.errors import Fatal, KernelEvolveError, Unavailable

T = TypeVar("T")

log = logging.getLogger(__name__)

SETTLE_S = 0.05
"""Between two looks at topics that are being created."""
DEAD_LETTER_FACTOR = 2
"""A dead letter carries why it failed on top of the record, so its topic takes larger ones."""


def describe(name: str) -> topics.Topic:
    """The table's row. Raises ``Fatal`` when there is none: a name that we made up is a bug of ours."""
    try:
        return topics.describe(name)
    except KeyError as error:
        raise Fatal(f"no topic {name!r} in shared.topics") from error


def record_bytes_max(topic: str, settings: KafkaSettings) -> int:
    """Largest record that ``topic`` takes."""
    return settings.record_bytes_max * (DEAD_LETTER_FACTOR if _is_dead_letters(topic) else 1)


def _is_dead_letters(topic: str) -> bool:
    return topic.endswith(topics.DEAD_LETTER_SUFFIX)


class Topics:
    """See the module."""

    def __init__(self, cluster: Cluster, settings: KafkaSettings, check_open: Callable[[], None]) -> None:
        self._cluster, self._settings, self._check_open = cluster, settings, check_open
        self._admin: Admin | None = None
        self._turn = asyncio.Lock()
        self._used: dict[str, topics.Topic] = {}
        self.partitions: dict[str, int] = {}
        """How many a topic has; only what the broker had when last asked."""
        self._seen: set[str] = set()
        self.births: Counter[str] = Counter()
        """Grows each time a topic is created anew under its readers."""

    async def ensure(self, rows: Iterable[topics.Topic]) -> None:
        """Create what is missing. Raises ``Unavailable``, and ``Fatal`` when the broker refuses."""
        missing = [row for row in rows if row.name not in self.partitions]
        if missing:
            self._used.update({row.name: row for row in missing})
            await self._settle(missing)

    async def look_again(self) -> None:
        """Ask the broker for every topic in use, and create what it has lost. Raises as ``ensure`` does."""
        if self._used:
            await self._settle(list(self._used.values()))
        else:
            await self.ping()

    def doubt(self) -> None:
        """Ask the broker about every topic before it is used again."""
        self.partitions.clear()

    async def ping(self) -> None:
        """Raises ``Unavailable``."""
        await self._ask("ping", lambda admin: admin.ping())

    async def close(self) -> None:
        """After the request in progress; nobody connects again once ``check_open`` says no."""
        async with self._turn:
            await self._disconnect()

    async def _settle(self, rows: list[topics.Topic]) -> None:
        """Create what is missing of ``rows`` and wait until all of them have leaders."""
        names = [row.name for row in rows]
        deadline_s = asyncio.get_running_loop().time() + self._settings.publish_timeout_ms / 1000
        while True:
            found = await self._ask("describe topics", lambda admin: admin.partitions(names))
            absent = [row for row in rows if row.name not in found]
            if all(found.get(name) for name in names):
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

    async def _create(self, rows: list[topics.Topic]) -> None:
        new = [self._new(row) for row in rows]
        for name in await self._ask("create topics", lambda admin: admin.create(new)):
            if name in self._seen:
                log.warning("the broker had lost topic %s, it is created again", name)
                self.births[name] += 1

    def _new(self, row: topics.Topic) -> NewTopic:
        config = {"retention.ms": str(row.retention_ms), "cleanup.policy": "compact" if row.compacted else "delete"}
        if _is_dead_letters(row.name):
            config["max.message.bytes"] = str(record_bytes_max(row.name, self._settings))
        return NewTopic(name=row.name, partitions=row.partitions, replication=self._settings.replication, config=config)

    async def _ask(self, what: str, request: Callable[[Admin], Awaitable[T]]) -> T:
        """One request at a time. A connection that failed is made anew from the bootstrap servers."""
        async with self._turn:
            self._check_open()
            try:
                async with attempt(what, self._settings.watch_timeout_ms):
                    if self._admin is None:
                        self._admin = await self._connect()
                    return await request(self._admin)
            except KernelEvolveError:
                await self._disconnect()
                raise

    async def _connect(self) -> Admin:
        admin = Admin(self._cluster, self._settings)
        await admin.start()
        return admin

    async def _disconnect(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()
