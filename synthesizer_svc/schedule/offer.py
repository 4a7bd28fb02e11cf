"""The moves that somebody else may choose from: legal changes of one schedule that make kernels nobody has (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shared.events import Entry, Move
from synthesizer_svc.schedule.moves import FRESH, Single, singles
from synthesizer_svc.schedule.proposal import Parent, Proposal, Situation
from synthesizer_svc.schedule.schedule import Decision, Schedule, Value

CHANGES_MAX = 3
"""Of one choice. More at once leave nobody the wiser about any of them."""
DRAFT = "draft"
"""Stands for the parent where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """``singles`` may be chosen, best first, and joined; ``base`` is the schedule that they change."""

    base: Schedule
    singles: tuple[Single, ...]

    def find(self, key: str, value: Value) -> Single | None:
        """The change of decision ``key`` to ``value``, when it is on offer."""
        return next((s for s in self.singles if s.decision.key == key and s.after == value), None)

    def by_decision(self) -> tuple[tuple[Decision, Value, tuple[Value, ...]], ...]:
        """Every decision on offer with its value now and those it may take: decisions by their best change, values in
        their own order.
        """
        found: dict[str, tuple[Decision, Value, list[Value]]] = {}
        for single in self.singles:
            found.setdefault(single.decision.key, (single.decision, single.before, []))[2].append(single.after)
        return tuple(
            (decision, before, tuple(sorted(after, key=decision.values.index)))
            for decision, before, after in found.values()
        )


def offer(situation: Situation, known: Callable[[Schedule], bool], most: int) -> Offer:
    """Up to ``most`` changes of the best parent's schedule, or of the default one where no parent has a schedule.

    What a sibling or a failure tried, and what makes a kernel that is ``known``, is not on offer.
    """
    parent = max(situation.parents, key=lambda p: (not p.failed, p.worth, p.candidate_id), default=None)
    if parent is None:
        parent = Parent(candidate_id=DRAFT, schedule=situation.space.default())
    found: list[Single] = []
    for single in singles(situation, parent):
        if len(found) == most or single.tier != FRESH:
            break
        if not known(single.proposal.schedule):
            found.append(single)
    return Offer(base=situation.space.complete(parent.schedule), singles=tuple(found))


def join(given: Offer, chosen: tuple[Single, ...], rationale: str) -> Proposal:
    """``chosen`` made together, in their order; each changes another decision."""
    schedule = given.base
    for single in chosen:
        schedule = schedule.with_choice(single.decision.key, single.after)
    moves = [single.proposal.move for single in chosen]
    return Proposal(
        schedule=schedule,
        move=Move(
            name=" + ".join(move.name for move in moves),
            parameters=moves[0].parameters if len(moves) == 1 else _numbered(moves),
            rationale=rationale or "; ".join(move.rationale for move in moves),
        ),
        skill_ids=tuple(sorted({skill for single in chosen for skill in single.proposal.skill_ids})),
    )


def _numbered(moves: list[Move]) -> tuple[Entry, ...]:
    return tuple(
        replace(entry, name=f"{entry.name}_{n}") for n, move in enumerate(moves, start=1) for entry in move.parameters
    )
