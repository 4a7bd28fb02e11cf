"""From a situation to an ordered stream of schedules to try (pure): drafts, crossover, repair, or moves.

The stream ends when the neighbourhood is used up; whoever reads it skips what is already known. Nothing is proposed
twice, and never the schedule of a parent, a sibling or a failed node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shared.events import Entry, Move
from synthesizer_svc.schedule.moves import improve
from synthesizer_svc.schedule.proposal import Parent, Proposal, Situation, change_entries, changes, move_name, standing
from synthesizer_svc.schedule.schedule import Schedule, Space, Value

if TYPE_CHECKING:
    import random

DRAWS_MAX = 256
"""Random points drawn per expansion before giving up on finding a new one."""
DRAWS_PER_DRAFT = 4
"""Of so many points the one farthest from the drafts before it is taken."""


def propose(situation: Situation) -> Iterator[Proposal]:
    """Schedules to try, most promising first, each once; ends when nothing is left."""
    seen = {situation.space.complete(s) for s in (*situation.siblings, *situation.negative)}
    seen |= {situation.space.complete(parent.schedule) for parent in situation.parents}
    for proposal in _stream(situation):
        if proposal.schedule not in seen:
            seen.add(proposal.schedule)
            yield proposal


def _stream(situation: Situation) -> Iterator[Proposal]:
    if not situation.parents:
        yield from drafts(situation)
        return
    best = max(situation.parents, key=lambda p: (not p.failed, p.worth, p.candidate_id))
    if len(situation.parents) > 1:
        yield from crossover(situation)
    if best.failed:
        yield from repair(situation, best)
    yield from improve(situation, best)


def drafts(situation: Situation) -> Iterator[Proposal]:
    """The default schedule, then random legal ones, each the most different of a few draws from those before it."""
    default = situation.space.default()
    yield Proposal(
        schedule=default,
        move=Move(name="draft:default", rationale="the emitter's own choice for every decision"),
    )
    stream = situation.stream("drafts")
    chosen = [default, *(situation.space.complete(s) for s in situation.siblings)]
    for _ in range(DRAWS_MAX):
        points = [_random_point(situation.space, stream) for _ in range(DRAWS_PER_DRAFT)]
        point = max(points, key=lambda p: min(len(changes(other, p)) for other in chosen))
        far = min(len(changes(other, point)) for other in chosen)
        if not far:
            continue
        chosen.append(point)
        yield Proposal(
            schedule=point,
            move=Move(
                name="draft:random",
                parameters=tuple(Entry(name=key, value=str(value)) for key, value in changes(default, point)),
                rationale=f"a random legal schedule; the nearest draft differs in {far} decisions",
            ),
        )


def _random_point(space: Space, stream: random.Random) -> Schedule:
    """A legal schedule; each decision keeps its default half the time, because defaults are mostly sound together."""
    return Schedule(
        choices=tuple(
            sorted((d.key, d.default if stream.random() < 0.5 else stream.choice(d.values)) for d in space.decisions)
        )
    )


def crossover(situation: Situation) -> Iterator[Proposal]:
    """Children of the first two parents: whole groups from one or the other, then single decisions."""
    first, second = situation.parents[:2]
    one, two = (situation.space.complete(p.schedule) for p in (first, second))
    stream = situation.stream("crossover")
    groups = sorted({d.group for d in situation.space.decisions})
    units = ("group", "decision") if len(groups) > 1 else ("decision",)
    for draw in range(DRAWS_MAX):
        unit = units[draw % len(units)]
        heads = {group: stream.random() < 0.5 for group in groups}
        child: dict[str, Value] = {}
        for decision in situation.space.decisions:
            from_one = heads[decision.group] if unit == "group" else stream.random() < 0.5
            child[decision.key] = dict((one if from_one else two).choices)[decision.key]
        schedule = Schedule(choices=tuple(sorted(child.items())))
        if schedule not in (one, two):
            yield Proposal(schedule=schedule, move=_crossing(situation, first, second, schedule, unit))


def _crossing(situation: Situation, first: Parent, second: Parent, child: Schedule, unit: str) -> Move:
    base = situation.space.complete(first.schedule)
    taken = changes(base, child)
    return Move(
        name="crossover",
        parameters=(Entry(name="unit", value=unit), *(Entry(name=key, value=str(value)) for key, value in taken)),
        rationale=(
            f"{len(taken)} decisions of {second.candidate_id} in {first.candidate_id}, drawn per {unit}; "
            f"first {standing(first)}; second {standing(second)}"
        ),
    )


def repair(situation: Situation, parent: Parent) -> Iterator[Proposal]:
    """Back toward the default, which is the emitter's safest: each differing decision alone, then all of them."""
    base, default = situation.space.complete(parent.schedule), situation.space.default()
    stream = situation.stream("repair")
    different = [d for d in situation.space.decisions if base.get(d.key) != d.default]
    stream.shuffle(different)
    for decision in different:
        before = base.get(decision.key)
        assert before is not None
        yield Proposal(
            schedule=base.with_choice(decision.key, decision.default),
            move=Move(
                name=move_name(situation.kind(decision), decision, decision.default),
                parameters=(
                    *change_entries(situation.kind(decision), decision, before, decision.default),
                    Entry(name="purpose", value="repair"),
                ),
                rationale=f"{decision.key} {before} -> {decision.default}, the default; {standing(parent)}",
            ),
        )
    if different:
        yield Proposal(
            schedule=default,
            move=Move(
                name="repair:default",
                parameters=tuple(Entry(name=key, value=str(value)) for key, value in changes(base, default)),
                rationale=f"every decision back to its default; {standing(parent)}",
            ),
        )
