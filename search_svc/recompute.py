"""A journal made anew from facts, as the search would have written it (pure).

The facts of a search are in one partition, so the bus gives their order; decisions follow from them. What comes out is
equal, byte for byte, to what the journal holds, or one of the two is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from search_svc import chain, replay
from search_svc.decide import decide
from search_svc.tree import Tree
from shared import wire
from shared.errors import Poison, UserError
from shared.events import Envelope, NodePruned, SearchFinished, SearchPaused
from shared.store import JournalEntry

ECHOES = (NodePruned, SearchPaused, SearchFinished)
"""The search's own facts, seen again on the topic: not inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """``from_journal`` counts the facts that the bus no longer held."""

    entries: tuple[JournalEntry, ...]
    from_journal: int


def journal(facts: Iterable[Envelope], recorded: Sequence[JournalEntry]) -> Recomputed:
    """Decide again on ``facts`` as the bus holds them, oldest first, with repetitions and echoes.

    Where the bus holds every fact that ``recorded`` has, nothing else of ``recorded`` is looked at. Otherwise retention
    or a broker's death took some, and what ``recorded`` has comes from there, order included.

    Raises:
        ReplayDivergence: an entry of ``recorded`` that is needed was altered.
    """
    held = _inputs(facts)
    missing = [entry for entry in recorded if entry.event_id not in held]
    inputs = list(held.values()) if not missing else _merged(held, recorded)
    return Recomputed(entries=_decided(inputs), from_journal=len(missing))


def _inputs(facts: Iterable[Envelope]) -> dict[str, Envelope]:
    """What a search takes as input, once each, in order of first arrival."""
    held: dict[str, Envelope] = {}
    for fact in facts:
        if not isinstance(fact.event, ECHOES):
            held.setdefault(fact.id, fact)
    return held


def _merged(held: dict[str, Envelope], recorded: Sequence[JournalEntry]) -> list[Envelope]:
    """What ``recorded`` took in, then what it has not taken in yet.

    Of a fact that both have, the recorded copy: after a broker lost its data, the bus may hold a later answer to the
    same request, which the search ignored.
    """
    taken = {fact.id: fact for fact in replay.inputs(recorded)}
    return [*taken.values(), *(fact for fact in held.values() if fact.id not in taken)]


def _decided(inputs: Iterable[Envelope]) -> tuple[JournalEntry, ...]:
    entries: list[JournalEntry] = []
    tree: Tree | None = None
    previous = ""
    for envelope in inputs:
        try:
            tree, commands = decide(tree, envelope)
        except (Poison, UserError):
            continue  # the search refuses it too, and writes no entry
        packed = tuple(wire.pack(command) for command in commands)
        entry = chain.link(previous, len(entries), envelope.id, wire.pack(envelope), packed)
        entries.append(entry)
        previous = entry.digest
    return tuple(entries)
