"""What must be true after any simulated run; every check raises with the seed, which is the bug report."""

from __future__ import annotations

import asyncio

from search_svc import replay
from search_svc.invariants import validate
from shared import wire
from shared.events import (
    CandidateProduced,
    Envelope,
    EvaluationCompleted,
    EvaluationRequested,
    ExpansionRequested,
    Purpose,
    SearchFinished,
    SearchPaused,
)
from shared.store import JournalEntry
from tests.sim.faults import COMMANDS
from tests.sim.world import World


class Broken(AssertionError):
    """An invariant does not hold."""


def every_invariant(world: World, *, lossy: bool = False) -> None:
    """Raises ``Broken``, or what replay raises, for the first one that does not hold.

    ``lossy``: a broker lost its data, so that a fact may have been published and never read.
    """
    for search in world.searches:
        entries = asyncio.run(_entries(world, search.search_id))
        facts = [wire.unpack(entry.event) for entry in entries]
        commands = [wire.unpack(command) for entry in entries for command in entry.commands]
        published = [e for e in world.bus.published if getattr(e.event, "search_id", "") == search.search_id]
        _each_fact_once(world, entries, facts)
        _replays(world, entries)
        if not lossy:
            _nothing_lost(world, facts, published)
        _outbox_agrees(world, entries, commands, published)
        _finished_once(world, commands)
        _no_kernel_measured_twice(world, commands)
        _no_orphan_work(world, commands, facts)
        _waits_for_nobody(world, entries, facts)


async def _entries(world: World, search_id: str) -> list[JournalEntry]:
    return [entry async for entry in world.store.journal.read(search_id)]


def _require(world: World, condition: bool, what: str) -> None:
    if not condition:
        raise Broken(f"seed {world.seed}: {what}")


def _each_fact_once(world: World, entries: list[JournalEntry], facts: list[Envelope]) -> None:
    fact_ids = [fact.id for fact in facts]
    _require(world, len(fact_ids) == len(set(fact_ids)), "a fact was applied twice")
    _require(world, fact_ids == [entry.event_id for entry in entries], "an entry is filed under another event's id")


def _replays(world: World, entries: list[JournalEntry]) -> None:
    report = replay.verify(entries)
    _require(world, replay.rebuild(entries) == report.tree, "rebuilding and deciding give different trees")
    validate(report.tree)


def _nothing_lost(world: World, facts: list[Envelope], published: list[Envelope]) -> None:
    journalled = {envelope.id for envelope in facts}
    inputs = [envelope for envelope in published if not isinstance(envelope.event, COMMANDS)]
    lost = [envelope.subject for envelope in inputs if envelope.id not in journalled]
    _require(world, not lost, f"facts published and never journalled: {lost}")


def _outbox_agrees(
    world: World, entries: list[JournalEntry], commands: list[Envelope], published: list[Envelope]
) -> None:
    out = {envelope.id: envelope for envelope in published if isinstance(envelope.event, COMMANDS)}
    recorded = {envelope.id: envelope for envelope in commands}
    _require(world, len(recorded) == len(commands), "two commands share an id")
    _require(world, all(entry.sent for entry in entries), "an entry was never marked sent")
    _require(world, set(recorded) <= set(out), "a journalled command was never published")
    _require(world, not world.bus.orphans, f"published before they were journalled: {world.bus.orphans}")
    _require(world, set(out) <= set(recorded), "an orphan: a command was published and is in no journal")
    _require(world, out == recorded, "a command was published otherwise than journalled")


def _finished_once(world: World, commands: list[Envelope]) -> None:
    finished = [c.event for c in commands if isinstance(c.event, SearchFinished)]
    _require(world, len(finished) == 1, f"finished {len(finished)} times")


def _no_kernel_measured_twice(world: World, commands: list[Envelope]) -> None:
    first = [
        c.event.kernel.kernel_id
        for c in commands
        if isinstance(c.event, EvaluationRequested) and c.event.purpose is Purpose.SEARCH and c.event.attempt == 1
    ]
    _require(world, len(first) == len(set(first)), "one kernel was sent to evaluation twice")


def _no_orphan_work(world: World, commands: list[Envelope], facts: list[Envelope]) -> None:
    """Workers only did what a journal asked for, and everything asked for was answered."""
    asked = {
        getattr(c.event, "evaluation_id", "") or getattr(c.event, "expansion_id", "")
        for c in commands
        if isinstance(c.event, ExpansionRequested | EvaluationRequested)
    }
    answered = {
        f.event.evaluation_id if isinstance(f.event, EvaluationCompleted) else f.event.expansion_id
        for f in facts
        if isinstance(f.event, EvaluationCompleted | CandidateProduced)
    }
    _require(world, answered <= asked, "an answer to a question that no journal asked")


def _waits_for_nobody(world: World, entries: list[JournalEntry], facts: list[Envelope]) -> None:
    """A search pauses only when nothing of it runs, and takes no decision of its own for news."""
    echoes = [fact.subject for fact in facts if isinstance(fact.event, COMMANDS)]
    _require(world, not echoes, f"decisions of a search came back to it as facts: {echoes}")
    for position, entry in enumerate(entries, start=1):
        if any(isinstance(wire.unpack(command).event, SearchPaused) for command in entry.commands):
            tree = replay.rebuild(entries[:position])
            _require(world, tree is not None and not tree.running, "paused while something was running")
