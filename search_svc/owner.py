"""Owning searches: fact in, journal, commands out, so that a crash at any point loses and doubles nothing.

::

    seen(event.id)? -> decide -> append {seq, event, commands, sent: false}   <- ONE write
                    -> publish the commands (same ids on every retry) -> mark sent -> the consume loop commits, last

The journal is the fence between two owners of a search: the one that appends second gets ``Conflict``, drops its tree
and reads again. Whatever is unsent when a stream is read is published again by whoever read it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from search_svc import chain, exported, replay
from search_svc.decide import SOURCE, decide
from search_svc.recompute import ECHOES
from search_svc.settings import Settings
from search_svc.tree import Tree
from shared import envelopes, wire
from shared.errors import Conflict, Fatal, Poison, ReplayDivergence, UserError
from shared.events import Envelope, EvaluationRequested, ExpansionRequested, ModelBudget, SearchResumed
from shared.ports import Ports

NO_BUDGET = ModelBudget()

log = logging.getLogger(__name__)


class SearchBroken(Fatal):
    """Nobody can go on with one search; all others are well."""


class DamagedJournal(SearchBroken):
    """What the journal of one search says is not what was written; nobody can decide on it."""


@dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)
class Held:
    """A search in memory: exactly what its journal says, or stale, in which case the next append conflicts."""

    search_id: str
    tree: Tree | None = None
    length: int = 0
    digest: str = ""
    seen: dict[str, None] = field(default_factory=dict)
    unsent: dict[int, tuple[Envelope, ...]] = field(default_factory=dict)

    @property
    def cut_off_fork(self) -> bool:
        """The copied history of a fork whose SearchForked never came: a search of another name, not this one's."""
        return self.tree is not None and self.tree.search.search_id != self.search_id


Changed = Callable[[Held], Awaitable[None]]
"""Told of a search after each of its facts, once that fact and its commands are safe. Raises ``Conflict`` when another
owner has gone further meanwhile: then it is told again, of that.
"""


async def _nobody(_held: Held) -> None:
    """Who listens when nobody does."""


class Owner:
    """Handles facts of every search whose partition this process owns; facts of one search in turn."""

    def __init__(
        self, ports: Ports, settings: Settings, changed: Changed = _nobody, *, resumed_with: ModelBudget = NO_BUDGET
    ) -> None:
        """``resumed_with``: what searches that are taken up again may spend on models; zeros leave it as it is."""
        self._journal, self._bus, self._clock = ports.store.journal, ports.bus, ports.clock
        self._settings = settings
        self._changed, self._resumed_with = changed, resumed_with
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def on_fact(self, envelope: Envelope) -> None:
        """Take one fact through the recipe. Returning means that it and its commands are safe.

        Raises:
            Poison: no search can use it.
            SearchBroken: the search's journal was altered, or the bus refuses what it decided.
            Fatal: other owners keep being first.
        """
        if isinstance(envelope.event, ECHOES):
            return
        search_id = str(getattr(envelope.event, "search_id", ""))
        if not search_id:
            raise Poison(f"{type(envelope.event).__name__} names no search")
        async with self._turn(search_id):
            await self._take(search_id, envelope)

    async def recover(self) -> None:
        """Flush what a crash left unsent in any stream; on a bus that died too, ask again what is outstanding.

        A fork that was cut off while its history was being copied asks for nothing: ``service.fork`` finishes it.
        """
        for search_id in await self._journal.streams():
            async with self._turn(search_id):
                held = await self._read(search_id)
                if held.cut_off_fork:
                    log.warning("search %s: a fork that was cut off before it began; fork again", search_id)
                    continue
                await self._flush(held)
                if self._settings.reissue_outstanding:
                    await self._resume(held)

    async def ask_again(self, search_id: str) -> Tree | None:
        """Publish, under the ids they had, what is unsent and what is outstanding: for a bus that may have lost it.

        Returns the tree, None for a search whose start was never journalled. Asking twice is harmless.

        Raises:
            SearchBroken: the search's journal was altered, or the bus refuses what it decided.
        """
        async with self._turn(search_id):
            self._held.pop(search_id, None)
            held = await self._hold(search_id)
            if held.tree is None or held.cut_off_fork:
                return held.tree
            await self._flush(held)
            if not held.tree.finished:
                await self._reissue(held, held.tree)
            return (await self._tell(held)).tree

    def _turn(self, search_id: str) -> asyncio.Lock:
        return self._turns.setdefault(search_id, asyncio.Lock())

    async def _take(self, search_id: str, envelope: Envelope) -> None:
        for _ in range(self._settings.conflicts_max):
            held = await self._hold(search_id)
            try:
                if envelope.id not in held.seen:
                    await self._record(held, envelope)
            except Conflict:
                log.info("search %s: another owner was first, reading again", search_id)
                self._held.pop(search_id, None)
                continue
            await self._flush(held)
            await self._tell(held)
            return
        raise Fatal(f"search {search_id}: lost {self._settings.conflicts_max} races for one fact")

    async def _tell(self, held: Held) -> Held:
        """Tell of ``held``; and of what another owner made of the search meanwhile, for as long as one does.

        So whoever tells last has seen everything, and no late word of a former owner stands.
        """
        while True:
            try:
                await self._changed(held)
            except Conflict:
                self._held.pop(held.search_id, None)
                held = await self._hold(held.search_id)
            else:
                return held

    async def _record(self, held: Held, envelope: Envelope) -> None:
        """Decide, and write input and decision in one entry; memory follows only what was written."""
        tree, commands = self._decide(held.tree, envelope)
        packed = tuple(wire.pack(command) for command in commands)
        entry = chain.link(held.digest, held.length, envelope.id, wire.pack(envelope), packed)
        entry = replace(entry, sent=not commands)  # nothing to send is sent: it saves a write
        with exported.appending(self._clock):
            await self._journal.append(held.search_id, entry)
        exported.recorded(envelope, commands)
        held.tree, held.digest = tree, entry.digest
        held.length += 1
        held.seen[envelope.id] = None
        if commands:
            held.unsent[entry.seq] = commands

    def _decide(self, tree: Tree | None, envelope: Envelope) -> tuple[Tree, tuple[Envelope, ...]]:
        try:
            return decide(tree, envelope)
        except UserError as error:
            raise Poison(str(error)) from error

    async def _flush(self, held: Held) -> None:
        for seq, commands in list(held.unsent.items()):
            await self._publish(held, commands)
            await self._journal.mark_sent(held.search_id, seq)
            del held.unsent[seq]

    async def _publish(self, held: Held, commands: tuple[Envelope, ...]) -> None:
        for command in commands:
            try:
                await self._bus.publish(envelopes.topic_of(command.event), wire.encode(command))
            except Poison as error:
                raise SearchBroken(
                    f"search {held.search_id}: {command.subject} cannot be published: {error}"
                ) from error
            exported.published(command)

    async def _hold(self, search_id: str) -> Held:
        held = self._held.get(search_id)
        if held is None:
            held = self._held[search_id] = await self._read(search_id)
        self._held.move_to_end(search_id)
        while len(self._held) > self._settings.trees_in_memory_max:
            self._held.popitem(last=False)
        return held

    async def _read(self, search_id: str) -> Held:
        """The search as its journal tells it."""
        held = Held(search_id=search_id)
        async for entry in self._journal.read(search_id):
            try:
                envelope, commands = replay.decoded(entry, held.length, held.digest)
                held.tree = replay.advance(held.tree, envelope, commands)
            except (ReplayDivergence, Poison) as error:
                raise DamagedJournal(f"search {search_id}: {error}") from error
            held.length, held.digest = entry.seq + 1, entry.digest
            held.seen[entry.event_id] = None
            if not entry.sent:
                held.unsent[entry.seq] = commands
        return held

    async def _resume(self, held: Held) -> None:
        """Ask again what the dead bus lost, and record that the time until now was downtime."""
        tree = held.tree
        if tree is None or tree.finished:
            return
        await self._reissue(held, tree)
        event = SearchResumed(search_id=held.search_id, at_ns=self._clock.now_ns(), model=self._resumed_with)
        latest = next(reversed(held.seen))
        await self._take(held.search_id, envelopes.envelope(event, cause_id=latest, source=SOURCE, clock=self._clock))

    async def _reissue(self, held: Held, tree: Tree) -> None:
        async for entry in self._journal.read(held.search_id):
            commands = (wire.unpack(command) for command in entry.commands)
            await self._publish(held, tuple(command for command in commands if _outstanding(tree, command)))


def _outstanding(tree: Tree, command: Envelope) -> bool:
    """Whether ``command`` is the request, as last made, of something that has no answer."""
    match command.event:
        case ExpansionRequested() as request:
            expansion = tree.expansions[request.expansion_id]
            return bool(expansion.open) and expansion.request == request
        case EvaluationRequested() as request:
            return tree.in_flight.get(request.evaluation_id) == request
        case _:
            return False
