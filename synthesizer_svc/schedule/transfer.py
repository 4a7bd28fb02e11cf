"""A schedule found on one chip, as a draft for another (pure).

Emitters share the plan, so groups have the same names everywhere, and many decisions do, too. What such a decision is
worth differs from chip to chip: a transferred schedule is a prior, and as untested as any other draft.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.events import Entry, Move, Prior
from synthesizer_svc.schedule.proposal import Proposal
from synthesizer_svc.schedule.schedule import Schedule, Space, Value

MOVE = "draft:prior"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A legal ``schedule`` here: the choices ``carried`` over, everything else at its default. ``left`` are the keys
    of the choices that this space does not know, or not with their values.
    """

    schedule: Schedule
    carried: tuple[tuple[str, Value], ...]
    left: tuple[str, ...]


def transfer(space: Space, found: Schedule) -> Transfer:
    """``found``, of another space, in ``space``."""
    offered = {decision.key: decision.values for decision in space.decisions}
    carried = tuple((key, value) for key, value in found.choices if value in offered.get(key, ()))
    return Transfer(
        schedule=space.complete(Schedule(choices=carried)),
        carried=carried,
        left=tuple(key for key, value in found.choices if value not in offered.get(key, ())),
    )


def seeded(space: Space, found: Schedule, prior: Prior) -> Proposal:
    """The draft that ``found``, the schedule of ``prior``, makes in ``space``; its move records where it is from."""
    moved = transfer(space, found)
    of = (
        Entry(name="chip", value=prior.chip),
        Entry(name="search", value=prior.search_id),
        Entry(name="candidate", value=prior.candidate_id),
        Entry(name="kernel", value=prior.kernel_id),
        Entry(name="language", value=prior.language),
    )
    carried = tuple(Entry(name=key, value=str(value)) for key, value in moved.carried)
    return Proposal(
        schedule=moved.schedule, move=Move(name=MOVE, parameters=(*of, *carried), rationale=_rationale(prior, moved))
    )


def _rationale(prior: Prior, moved: Transfer) -> str:
    stood = f" ({prior.found} there)" if prior.found else ""
    many = len(moved.carried) + len(moved.left)
    left = f"; not offered here: {', '.join(moved.left)}" if moved.left else ""
    return f"{origin(prior)}{stood}, untested here: {len(moved.carried)} of its {many} decisions carried over{left}"


def origin(prior: Prior) -> str:
    """Where a draft is from, in words."""
    return f"seeded from {prior.chip}'s schedule of kernel {prior.kernel_id}"
