"""Replaying a journal: verify every decision, rebuild the tree, fork under another policy (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from search_svc import chain, policies, story
from search_svc.apply import apply, start
from search_svc.decide import SOURCE, decide
from search_svc.tree import Tree
from shared import envelopes, ids, wire
from shared.errors import LogError, Poison, ReplayDivergence
from shared.events import Entry, Envelope, EvaluationCompleted, SearchForked, SearchStarted
from shared.store import JournalEntry

LOG = "the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A replay that found nothing wrong. ``decisions`` counts the commands compared."""

    entries: int
    decisions: int
    tree: Tree


def verify(entries: Sequence[JournalEntry], damaged: Mapping[int, str] | None = None) -> Report:
    """Recompute every decision of a log and compare it with the recorded one.

    ``damaged`` maps positions that the log's container already found altered to what is wrong there.

    Raises:
        ReplayDivergence: at the first entry that was altered after it was written, cannot be read, or whose commands
            today's code would not issue; carries position, both sides and the story of the node.
        LogError: the log is empty.
    """
    tree: Tree | None = None
    previous, decisions, marks = "", 0, damaged or {}
    for position, entry in enumerate(entries):
        _intact(entry, position, previous, marks)
        envelope, recorded = _decoded(entry)
        tree, computed = _recomputed(tree, envelope, entry.seq)
        if computed != recorded:
            raise ReplayDivergence(entry.seq, *_difference(recorded, computed), story.of_event(tree, envelope.event))
        previous, decisions = entry.digest, decisions + len(computed)
    if stray := sorted(set(marks) - set(range(len(entries)))):
        raise ReplayDivergence(stray[0], "a readable entry", marks[stray[0]])
    if tree is None:
        raise LogError("holds no entries", where=LOG)
    return Report(entries=len(entries), decisions=decisions, tree=tree)


def rebuild(entries: Iterable[JournalEntry]) -> Tree | None:
    """The tree as its events and recorded commands made it, deciding nothing; None for an empty log.

    Raises:
        ReplayDivergence: an entry cannot be read, or is not what was written.
    """
    tree: Tree | None = None
    previous = ""
    for position, entry in enumerate(entries):
        envelope, commands = decoded(entry, position, previous)
        tree = advance(tree, envelope, commands)
        previous = entry.digest
    return tree


def advance(tree: Tree | None, envelope: Envelope, commands: Iterable[Envelope]) -> Tree:
    """``tree`` after one journal entry.

    Raises:
        Poison: the first event of a log is not SearchStarted.
    """
    event = envelope.event
    if tree is None:
        if not isinstance(event, SearchStarted):
            raise Poison(f"a log begins with SearchStarted, not {type(event).__name__}")
        tree = start(event)
    else:
        tree = apply(tree, event)
    for command in commands:
        tree = apply(tree, command.event)
    return tree


def fork(
    entries: Sequence[JournalEntry],
    *,
    at_seq: int,
    search_id: str,
    policy: str,
    seed: int,
    parameters: tuple[Entry, ...] = (),
    at_ns: int = 0,
) -> tuple[tuple[JournalEntry, ...], Envelope]:
    """The first ``at_seq`` entries, as the new search's history, and the event that continues it.

    Journal the entries under ``search_id``, then publish the event. The entries keep the parent's ids, so outstanding
    requests are asked again under the ids they had, and the evaluator's memo answers what was measured.

    Raises:
        LogError: ``at_seq`` is not a position of the log.
        ReplayDivergence: an entry before it was altered.
        UserError: an unknown policy or a bad parameter.
    """
    if not 1 <= at_seq <= len(entries):
        raise LogError(f"has no position {at_seq}", where=LOG, hint=f"1 to {len(entries)}")
    policies.build(policy, parameters)
    parent = rebuild(entries[:at_seq])
    assert parent is not None
    forked = SearchForked(
        search_id=search_id,
        parent_search_id=parent.search.search_id,
        at_seq=at_seq,
        policy=policy,
        seed=seed,
        policy_parameters=parameters,
        at_ns=at_ns,
    )
    envelope = Envelope(
        id=ids.derive(search_id, "SearchForked", 0),
        event=forked,
        source=SOURCE,
        subject=envelopes.subject_of(forked),
        partition_key=search_id,
        causation_id=entries[at_seq - 1].event_id,
        correlation_id=search_id,
        time_ns=at_ns,
    )
    return tuple(replace(entry, sent=True) for entry in entries[:at_seq]), envelope


def inputs(entries: Iterable[JournalEntry]) -> Iterator[Envelope]:
    """Every fact of a log, in order.

    Raises:
        ReplayDivergence: at the first entry that was altered or cannot be read.
    """
    previous = ""
    for position, entry in enumerate(entries):
        envelope, _ = decoded(entry, position, previous)
        yield envelope
        previous = entry.digest


def measurements(entries: Iterable[JournalEntry]) -> tuple[EvaluationCompleted, ...]:
    """Every recorded verdict, in order: what a fork preloads the evaluation cache with."""
    return tuple(fact.event for fact in inputs(entries) if isinstance(fact.event, EvaluationCompleted))


def decoded(entry: JournalEntry, position: int, previous: str) -> tuple[Envelope, tuple[Envelope, ...]]:
    """Input and commands of the entry at ``position`` of a stream, after the entry with digest ``previous``.

    Raises:
        ReplayDivergence: it is out of place, altered or unreadable.
    """
    _intact(entry, position, previous, {})
    return _decoded(entry)


def _intact(entry: JournalEntry, position: int, previous: str, damaged: Mapping[int, str]) -> None:
    if position in damaged:
        raise ReplayDivergence(position, "an unaltered entry", damaged[position])
    if entry.seq != position:
        raise ReplayDivergence(position, f"entry {position}", f"entry {entry.seq}")
    if not chain.holds(previous, entry):
        computed = chain.digest(previous, entry.event, entry.commands)
        raise ReplayDivergence(position, f"digest {entry.digest}", f"digest {computed}: altered after it was written")


def _decoded(entry: JournalEntry) -> tuple[Envelope, tuple[Envelope, ...]]:
    try:
        envelope, commands = wire.unpack(entry.event), tuple(wire.unpack(command) for command in entry.commands)
    except Poison as error:
        raise ReplayDivergence(entry.seq, "a readable entry", str(error)) from error
    if envelope.id != entry.event_id:  # what a redelivery is recognised by; the digest covers the event, not this copy
        raise ReplayDivergence(entry.seq, f"event {entry.event_id}", f"event {envelope.id}")
    return envelope, commands


def _recomputed(tree: Tree | None, envelope: Envelope, seq: int) -> tuple[Tree, tuple[Envelope, ...]]:
    try:
        return decide(tree, envelope)
    except Poison as error:
        raise ReplayDivergence(seq, "a decision", str(error)) from error


def _difference(recorded: Sequence[Envelope], computed: Sequence[Envelope]) -> tuple[object, object]:
    """The first pair of commands that differ; None where one side has run out."""
    for n in range(max(len(recorded), len(computed))):
        left = recorded[n] if n < len(recorded) else None
        right = computed[n] if n < len(computed) else None
        if left != right:
            return left and left.event, right and right.event
    return None, None
