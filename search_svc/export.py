"""A search as one self-contained log: its entries, and every blob that they name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from search_svc import recompute, replay
from shared import kelog, topics, wire
from shared.bus import Bus
from shared.errors import LogError, NotFound, Poison
from shared.events import CandidateProduced, CandidateRejected, Context, Envelope, SearchStarted
from shared.ports import Ports
from shared.store import Blobs, JournalEntry

CHUNK_BYTES = 256 << 10
"""Of a log in pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """``from_journal`` counts the facts that had to come from the journal although the bus was asked."""

    entries: tuple[JournalEntry, ...]
    blobs: dict[str, bytes]
    from_journal: int = 0

    def chunks(self, stream: str) -> Iterator[bytes]:
        """The ``.kelog`` file of the search in pieces of about ``CHUNK_BYTES``."""
        piece = bytearray()
        for line in kelog.text_lines(self.entries, self.blobs, stream=stream):
            piece += line.encode()
            if len(piece) >= CHUNK_BYTES:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)


async def from_journal(ports: Ports, search_id: str) -> Exported:
    """The log as the journal has it.

    Raises:
        NotFound: there is no such search, or it has not begun.
        ReplayDivergence: an entry was altered after it was written; carries its position.
    """
    entries = tuple([entry async for entry in ports.store.journal.read(search_id)])
    return Exported(entries=entries, blobs=await blobs_named(ports.store.blobs, _some(entries, search_id)))


async def from_bus(ports: Ports, search_id: str) -> Exported:
    """The log recomputed from the facts that the bus still holds. Raises as ``from_journal`` does."""
    recorded = tuple([entry async for entry in ports.store.journal.read(search_id)])
    facts = [fact async for fact in _facts(ports.bus, search_id)]
    made = recompute.journal(facts, recorded)
    blobs = await blobs_named(ports.store.blobs, _some(made.entries, search_id))
    return Exported(entries=made.entries, blobs=blobs, from_journal=made.from_journal)


async def blobs_named(blobs: Blobs, entries: Sequence[JournalEntry]) -> dict[str, bytes]:
    """Everything that the facts of a log name: operator, kernels, schedules, prompts, conversations.

    Raises:
        LogError: one of them is not in the store.
        ReplayDivergence: an entry was altered after it was written; carries its position.
    """
    names: dict[str, None] = {}
    for fact in replay.inputs(entries):
        names |= dict.fromkeys(_named(fact.event))
    return {name: await _blob(blobs, name) for name in names}


async def _blob(blobs: Blobs, name: str) -> bytes:
    try:
        return await blobs.get(name)
    except KeyError as error:
        raise LogError("is named by the log and missing in the store", where=f"blob {name}") from error


def _named(event: object) -> Iterable[str]:
    match event:
        case SearchStarted():
            yield event.operator.source_hash
            yield from (prior.schedule_hash for prior in event.priors)
        case CandidateProduced():
            found = (event.kernel.source_hash, event.kernel.schedule_hash, *_asked(event.context))
            yield from (name for name in found if name)
        case CandidateRejected():
            yield from (name for name in _asked(event.context) if name)


def _asked(context: Context) -> tuple[str, str]:
    return context.prompt_hash, context.conversation_hash


async def _facts(bus: Bus, search_id: str) -> AsyncIterator[Envelope]:
    async for delivery in bus.history(topics.FACTS, search_id):
        try:
            yield wire.decode(delivery.record)
        except Poison:
            continue  # in the dead-letter topic since somebody read it


def _some(entries: tuple[JournalEntry, ...], search_id: str) -> tuple[JournalEntry, ...]:
    if not entries:
        raise NotFound("has no log", where=f"search {search_id}", hint="`kernelevolve list` shows the searches")
    return entries
