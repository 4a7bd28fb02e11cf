"""What the evaluator pools said of themselves, kept where every replica can read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shared import json_codec, topics
from shared.clock import SECOND_NS, Clock
from shared.errors import Poison
from shared.events import CapacityAnnounced, Envelope, WorkerState
from shared.store import Documents

COLLECTION = "search.workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The workers of one chip type that were heard of lately."""

    chip: str
    workers: int
    slots: int
    """Of the workers that take new work."""
    draining: int


class Pools:
    """Hears announcements, answers how much there is."""

    def __init__(self, documents: Documents, clock: Clock, silence_s: float) -> None:
        self._documents, self._clock, self._silence_ns = documents, clock, round(silence_s * SECOND_NS)

    async def on_announcement(self, envelope: Envelope) -> None:
        """Remember the latest word of one worker. Raises ``Poison`` for any other event."""
        event = envelope.event
        if not isinstance(event, CapacityAnnounced):
            raise Poison(f"{type(event).__name__} on {topics.CAPACITY}")
        standing = await self._worker(event.worker_id)
        if standing is not None and standing.at_ns > event.at_ns:
            return
        if event.state is WorkerState.GONE:
            await self._documents.delete(COLLECTION, event.worker_id)
        else:
            await self._documents.put(COLLECTION, event.worker_id, json_codec.to_plain(event))

    async def all(self) -> tuple[Pool, ...]:
        """By chip. Workers silent for too long are left out, and forgotten."""
        heard: list[CapacityAnnounced] = []
        oldest_ns = self._clock.now_ns() - self._silence_ns
        async for worker_id, plain in self._documents.scan(COLLECTION):
            worker = json_codec.from_plain(CapacityAnnounced, plain, COLLECTION)
            if worker.at_ns < oldest_ns:
                await self._documents.delete(COLLECTION, worker_id)
            else:
                heard.append(worker)
        return grouped(heard)

    async def slots(self, chip: str) -> int:
        """Evaluations that the pool of ``chip`` makes at the same time; 0 when nobody announced one."""
        return next((pool.slots for pool in await self.all() if pool.chip == chip), 0)

    async def _worker(self, worker_id: str) -> CapacityAnnounced | None:
        plain = await self._documents.get(COLLECTION, worker_id)
        if plain is None:
            return None
        worker = json_codec.from_plain(CapacityAnnounced, plain, COLLECTION)
        assert isinstance(worker, CapacityAnnounced)
        return worker


def grouped(workers: Iterable[CapacityAnnounced]) -> tuple[Pool, ...]:
    """One pool per chip, in order of chip id."""
    by_chip: dict[str, list[CapacityAnnounced]] = {}
    for worker in workers:
        by_chip.setdefault(worker.chip, []).append(worker)
    return tuple(
        Pool(
            chip=chip,
            workers=len(members),
            slots=sum(worker.slots for worker in members if worker.state is WorkerState.READY),
            draining=sum(worker.state is WorkerState.DRAINING for worker in members),
        )
        for chip, members in sorted(by_chip.items())
    )
