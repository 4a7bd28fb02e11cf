"""The recipe with one step wrong, once per step: a simulation of any of these that passes shows its checks empty."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from search_svc.owner import Held, Owner
from search_svc.tree import Tree
from shared.bus import Delivery
from shared.events import Envelope, SearchPaused
from shared.store import Journal, JournalEntry
from tests.fakes.landscape import Landscape, Moody
from tests.sim.world import Recipe


class CommitsFirst:
    """Commits a record as soon as it is delivered."""

    def __init__(self, inner) -> None:
        self._inner = inner

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(*exc)

    def __getattr__(self, name: str):
        return getattr(self._inner, name)

    async def poll(self, wait_s: float) -> Delivery | None:
        delivery = await self._inner.poll(wait_s)
        if delivery is not None:
            await self._inner.commit(delivery)
        return delivery


class ForgetsWhatItSaw(Owner):
    """No dedupe by event id."""

    async def _record(self, held: Held, envelope: Envelope) -> None:
        await super()._record(held, envelope)
        held.seen.clear()

    async def _read(self, search_id: str) -> Held:
        held = await super()._read(search_id)
        held.seen.clear()
        return held


class NoUniqueEvents:
    """A journal that fences by position only, so that a missing dedupe has its full effect."""

    def __init__(self, inner: Journal) -> None:
        self._inner = inner

    async def append(self, stream: str, entry: JournalEntry) -> None:
        seen = [old.event_id async for old in self._inner.read(stream)]
        if entry.event_id in seen:
            entry = replace(entry, event_id=f"{entry.event_id}#{entry.seq}")
        await self._inner.append(stream, entry)

    async def read(self, stream: str, start: int = 0) -> AsyncIterator[JournalEntry]:
        async for entry in self._inner.read(stream, start):
            yield replace(entry, event_id=entry.event_id.partition("#")[0])

    async def mark_sent(self, stream: str, seq: int) -> None:
        await self._inner.mark_sent(stream, seq)

    async def streams(self) -> Sequence[str]:
        return await self._inner.streams()


class ForgetsTheOutbox(Owner):
    """Does not publish what a crash left unsent."""

    async def _read(self, search_id: str) -> Held:
        held = await super()._read(search_id)
        held.unsent.clear()
        return held


class DrawsIds(Owner):
    """Random ids instead of derived ones."""

    def _decide(self, tree: Tree | None, envelope: Envelope) -> tuple[Tree, tuple[Envelope, ...]]:
        after, commands = super()._decide(tree, envelope)
        return after, tuple(replace(command, id=f"{random.getrandbits(64):016x}") for command in commands)


class PublishesFirst(Owner):
    """Publishes commands before they are journalled."""

    async def _record(self, held: Held, envelope: Envelope) -> None:
        _, commands = self._decide(held.tree, envelope)
        await self._publish(held, commands)
        await super()._record(held, envelope)


class NoFence(NoUniqueEvents):
    """A journal that appends wherever the stream ends, whatever position the writer expected."""

    async def append(self, stream: str, entry: JournalEntry) -> None:
        entries = [old async for old in self._inner.read(stream)]
        await super().append(stream, replace(entry, seq=len(entries)))


class HearsItself(Owner):
    """Takes the search's own word that it pauses for a fact about it."""

    async def on_fact(self, envelope: Envelope) -> None:
        if isinstance(envelope.event, SearchPaused):
            async with self._turn(envelope.event.search_id):
                await self._take(envelope.event.search_id, envelope)
            return
        await super().on_fact(envelope)


@dataclass(frozen=True)
class Mutation:
    """A wrong recipe, and a word of the complaint it must provoke: caught for its own reason, not for another."""

    recipe: Recipe
    expected: str
    landscape: Landscape = field(default_factory=Landscape)


MUTATIONS: dict[str, Mutation] = {
    "commit before journal": Mutation(Recipe(subscription=CommitsFirst), "Stalled"),
    "no dedupe": Mutation(Recipe(owner=ForgetsWhatItSaw, journal=NoUniqueEvents), "applied twice"),
    "no dedupe, but a journal with unique events": Mutation(Recipe(owner=ForgetsWhatItSaw), "races for one fact"),
    "no outbox flush on restart": Mutation(Recipe(owner=ForgetsTheOutbox), "Stalled"),
    "random ids": Mutation(Recipe(owner=DrawsIds), "ReplayDivergence"),
    "publish before journal": Mutation(Recipe(owner=PublishesFirst), "before they were journalled"),
    "hears its own pauses": Mutation(Recipe(owner=HearsItself), "came back to it as facts", Moody()),
    "no expected-seq fence": Mutation(Recipe(journal=NoFence), "altered after it was written"),
}
