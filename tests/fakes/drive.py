"""Drives the pure decision function over a landscape, one fact at a time, and keeps the journal it would have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from search_svc import chain
from search_svc.decide import decide
from search_svc.invariants import validate
from search_svc.tree import Tree
from shared import ids, wire
from shared.events import Envelope, EvaluationRequested, Event, ExpansionRequested, SearchStarted
from shared.store import JournalEntry
from tests.builders import SECOND_NS, enveloped
from tests.fakes.landscape import Landscape

STEPS_MAX = 20_000


@dataclass
class Drive:
    """One search by hand. Workers answer in a seeded order, so that facts interleave as they do in life."""

    landscape: Landscape = field(default_factory=Landscape)
    order_seed: int = 0
    check: bool = True
    tree: Tree | None = None
    entries: list[JournalEntry] = field(default_factory=list)
    waiting: list[Envelope] = field(default_factory=list)
    alter: Callable[[Event], Event] = lambda event: event

    def run(self, search: SearchStarted) -> Tree:
        """Until the search has finished and nothing is waiting."""
        self.take(enveloped(search))
        return self.finish()

    def finish(self) -> Tree:
        rng = ids.stream(self.order_seed, "order")
        while self.waiting:
            assert len(self.entries) < STEPS_MAX, "the search does not end"
            self.take(self.waiting.pop(rng.randrange(len(self.waiting))))
        assert self.tree is not None
        return self.tree

    def take(self, envelope: Envelope) -> tuple[Envelope, ...]:
        """Decide on one fact, journal it, and queue the workers' answers."""
        if hasattr(envelope.event, "at_ns"):
            stamped = replace(envelope.event, at_ns=len(self.entries) * SECOND_NS)
            envelope = replace(envelope, event=self.alter(stamped))
        before = self.tree
        self.tree, commands = decide(before, envelope)
        if self.check:
            assert decide(before, envelope) == (self.tree, commands)
            validate(self.tree)
        self._journal(envelope, commands)
        for command in commands:
            self.waiting.extend(enveloped(answer) for answer in self._answers(command))
        return commands

    def _answers(self, command: Envelope) -> list[Event]:
        match command.event:
            case ExpansionRequested() as request:
                return self.landscape.synthesize(request)
            case EvaluationRequested() as request:
                return [self.landscape.evaluate(request)]
        return []

    def _journal(self, envelope: Envelope, commands: tuple[Envelope, ...]) -> None:
        last = self.entries[-1].digest if self.entries else ""
        packed = tuple(wire.pack(command) for command in commands)
        self.entries.append(chain.link(last, len(self.entries), envelope.id, wire.pack(envelope), packed))
