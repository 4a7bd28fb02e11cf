"""Ports that fail: every call may be slow, may crash its caller before or after it took effect, may happen twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Self

from shared import envelopes, wire
from shared.bus import Bus, Record, Subscription
from shared.errors import Conflict
from shared.events import Envelope, EvaluationRequested, ExpansionRequested, NodePruned, SearchFinished, SearchPaused
from shared.store import Journal, JournalEntry, Store

COMMANDS = (ExpansionRequested, EvaluationRequested, NodePruned, SearchPaused, SearchFinished)
"""What only the search publishes."""


class Crash(BaseException):
    """The process dies here. Not an ``Exception``: nothing in the program may catch it."""


class Faults:
    """Draws what goes wrong. ``rate`` is the chance of a crash at each side of a port call; ``off`` heals the world."""

    def __init__(self, seed: int, rate: float, twice: float) -> None:
        self.rng = random.Random(seed)
        self.rate, self.twice = rate, twice
        self.crashes = 0
        self.calls = 0

    def off(self) -> None:
        self.rate = 0.0

    async def point(self) -> None:
        """One side of a port call."""
        self.calls += 1
        await asyncio.sleep(self.rng.random())
        if self.rng.random() < self.rate:
            self.crashes += 1
            raise Crash

    def again(self) -> bool:
        """Whether a producer's retry puts the record on the topic a second time."""
        return self.rng.random() < self.twice


class FaultyBus:
    """A bus whose calls may fail; ``published`` is everything that reached a topic, in order.

    ``orphans`` are commands of a search that no journal held at the moment they were published: were the process to
    die there, a worker would be busy with something nobody decided.
    """

    def __init__(self, inner: Bus, faults: Faults, journal: Journal) -> None:
        self._inner, self._faults, self._journal = inner, faults, journal
        self.published: list[Envelope] = []
        self.orphans: list[str] = []

    async def publish(self, topic: str, record: Record) -> None:
        await self._faults.point()
        envelope = wire.decode(record)
        if isinstance(envelope.event, COMMANDS) and not await self._journalled(envelope):
            self.orphans.append(envelope.subject)
        for _ in range(2 if self._faults.again() else 1):
            await self._inner.publish(topic, record)
            self.published.append(envelope)
        await self._faults.point()

    async def _journalled(self, envelope: Envelope) -> bool:
        packed = wire.pack(envelope)
        return any([packed in entry.commands async for entry in self._journal.read(envelope.correlation_id)])

    def subscribe(self, topic: str, group: str) -> Subscription:
        return self._inner.subscribe(topic, group)


class FaultyJournal:
    """A journal whose calls may fail; what it wrote stays written."""

    def __init__(self, inner: Journal, faults: Faults) -> None:
        self._inner, self._faults = inner, faults
        self.conflicts = 0
        """Appends refused because another owner had been first."""

    async def append(self, stream: str, entry: JournalEntry) -> None:
        await self._faults.point()
        try:
            await self._inner.append(stream, entry)
        except Conflict:
            self.conflicts += 1
            raise
        await self._faults.point()

    async def read(self, stream: str, start: int = 0) -> AsyncIterator[JournalEntry]:
        await self._faults.point()
        async for entry in self._inner.read(stream, start):
            yield entry

    async def mark_sent(self, stream: str, seq: int) -> None:
        await self._faults.point()
        await self._inner.mark_sent(stream, seq)
        await self._faults.point()

    async def streams(self) -> Sequence[str]:
        await self._faults.point()
        return await self._inner.streams()


class FaultyStore:
    """The journal fails; the search uses no other part of a store."""

    def __init__(self, inner: Store, journal: FaultyJournal) -> None:
        self.journal = journal
        self.documents, self.blobs = inner.documents, inner.blobs


class FaultySubscription:
    """A subscription whose commits may fail to happen."""

    def __init__(self, inner: Subscription, faults: Faults) -> None:
        self._inner, self._faults = inner, faults

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(*exc)

    async def poll(self, wait_s: float):
        return await self._inner.poll(wait_s)

    def pause(self) -> None:
        self._inner.pause()

    def resume(self) -> None:
        self._inner.resume()

    async def commit(self, delivery) -> bool:
        await self._faults.point()
        done = await self._inner.commit(delivery)
        await self._faults.point()
        return done


async def reply(bus: FaultyBus, envelope: Envelope) -> None:
    """Publish a worker's answer."""
    await bus.publish(envelopes.topic_of(envelope.event), wire.encode(envelope))
