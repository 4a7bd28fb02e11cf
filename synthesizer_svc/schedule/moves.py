"""Moves: one decision changed, or two when single ones are used up (pure).

Singles are ranked by a draw from what each is believed to be worth (``belief``). What was already tried beside the
new candidate comes after what was not, and what failed comes last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared import ids
from shared.events import PPM, Entry, Move
from synthesizer_svc.schedule import belief
from synthesizer_svc.schedule.proposal import Parent, Proposal, Situation, change_entries, changes, move_name, standing
from synthesizer_svc.schedule.schedule import Decision, Schedule, Value

if TYPE_CHECKING:
    import random

FRESH, TRIED, FAILED = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """A one-decision change with its rank; ``tier`` orders before ``score``."""

    decision: Decision
    before: Value
    after: Value
    tier: int
    proposal: Proposal


def steps(decision: Decision, before: Value, after: Value) -> int:
    """Distance between two values: positions apart where values are ordered (all integers), otherwise 1."""
    if all(isinstance(v, int) for v in decision.values):
        return abs(decision.values.index(before) - decision.values.index(after))
    return 1


def singles(situation: Situation, parent: Parent) -> tuple[Single, ...]:
    """Every legal one-decision change of ``parent``'s schedule, best first."""
    tried = _tried(situation, parent)
    base = situation.space.complete(parent.schedule)
    stream = situation.stream(f"moves:{ids.content_hash(base.to_json())}")
    current = dict(base.choices)
    found = [
        _single(situation, parent, base, decision, current[decision.key], after, tried, stream)
        for decision in situation.space.decisions
        for after in decision.values
        if after != current[decision.key]
    ]
    return tuple(sorted(found, key=lambda s: (s.tier, -s.proposal.score, s.decision.key, str(s.after))))


def doubles(situation: Situation, parent: Parent, ranked: tuple[Single, ...]) -> Iterator[Proposal]:
    """Two changes of different decisions, the best pairs of singles first; each pair once.

    Pairs come by the sum of their ranks, a cheap stand-in for the sum of their scores that needs no sorting of all.
    """
    base = situation.space.complete(parent.schedule)
    for total in range(1, 2 * len(ranked) - 2):
        for i in range(max(0, total - len(ranked) + 1), (total + 1) // 2):
            first, second = ranked[i], ranked[total - i]
            if first.decision.key == second.decision.key:
                continue
            schedule = base.with_choice(first.decision.key, first.after).with_choice(second.decision.key, second.after)
            yield Proposal(
                schedule=schedule,
                move=_joined(parent, first, second),
                score=first.proposal.score + second.proposal.score,
                skill_ids=tuple(sorted({*first.proposal.skill_ids, *second.proposal.skill_ids})),
            )


def improve(situation: Situation, parent: Parent) -> Iterator[Proposal]:
    """All single moves of ``parent``, then all double ones. Ends when both are used up."""
    ranked = singles(situation, parent)
    yield from (single.proposal for single in ranked)
    yield from doubles(situation, parent, ranked)


def _tried(situation: Situation, parent: Parent) -> dict[tuple[str, Value], int]:
    """Tier of each ``(key, value)`` that a sibling or a failed node has and the parent has not.

    A failed schedule that differs in many decisions says little about each of them, so only those within two changes
    of the parent count against a value.
    """
    tiers: dict[tuple[str, Value], int] = {}
    base = situation.space.complete(parent.schedule)
    for tier, schedules in ((TRIED, situation.siblings), (FAILED, situation.negative)):
        for schedule in schedules:
            different = changes(base, situation.space.complete(schedule))
            if len(different) <= 2:
                tiers.update(dict.fromkeys(different, tier))
    return tiers


def _single(
    situation: Situation,
    parent: Parent,
    base: Schedule,
    decision: Decision,
    before: Value,
    after: Value,
    tried: dict[tuple[str, Value], int],
    stream: random.Random,
) -> Single:
    name = move_name(situation.kind(decision), decision, after)
    known = belief.best_skill(
        situation.skills, name, chip=situation.chip, language=situation.language, bound=parent.bound
    )
    believed = (
        belief.from_skill(known[0], here=known[1])
        if known
        else belief.prior(decision, parent.bound, steps(decision, before, after))
    )
    tier = tried.get((decision.key, after), FRESH)
    move = Move(
        name=name,
        parameters=change_entries(situation.kind(decision), decision, before, after),
        rationale=_rationale(parent, decision, before, after, believed, tier),
    )
    proposal = Proposal(
        schedule=base.with_choice(decision.key, after),
        move=move,
        score=believed.draw(stream),
        skill_ids=(known[0].skill_id,) if known else (),
    )
    return Single(decision=decision, before=before, after=after, tier=tier, proposal=proposal)


def _rationale(
    parent: Parent, decision: Decision, before: Value, after: Value, believed: belief.Belief, tier: int
) -> str:
    parts = [f"{decision.key} {before} -> {after}", standing(parent)]
    if decision.pays_when:
        pays = ", ".join(bound.value for bound in decision.pays_when)
        parts.append(f"pays when {pays}-bound" + (f": {decision.why}" if decision.why else ""))
    elif decision.why:
        parts.append(decision.why)
    if believed.skill:
        skill = believed.skill
        parts.append(
            f"skill {skill.skill_id} ({skill.status.value}, {skill.chip}): time x{skill.ratio_ppm / PPM:.3f} "
            f"[{skill.low_ppm / PPM:.3f}, {skill.high_ppm / PPM:.3f}]"
        )
    if tier:
        parts.append("already tried by a sibling" if tier == TRIED else "failed nearby, so tried last")
    return "; ".join(parts)


def _joined(parent: Parent, first: Single, second: Single) -> Move:
    numbered = tuple(
        Entry(name=f"{entry.name}_{n}", value=entry.value)
        for n, single in enumerate((first, second), start=1)
        for entry in single.proposal.move.parameters
    )
    both = f"{first.decision.key} {first.before} -> {first.after} and {second.decision.key} {second.before} -> "
    return Move(
        name=f"{first.proposal.move.name} + {second.proposal.move.name}",
        parameters=numbered,
        rationale=f"{both}{second.after}; single moves are used up; {standing(parent)}",
    )
