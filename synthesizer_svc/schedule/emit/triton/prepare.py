"""A plan as kernels on a GPU see it: temporaries in their types, some computed where they are read (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.emit.triton import inline
from synthesizer_svc.schedule.emit.triton.memory_types import narrowed
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Decision, Schedule


def prepared(plan: Plan, schedule: Schedule | None = None) -> Plan:
    """``plan`` under ``schedule``, or under the defaults."""
    found = narrowed(plan)
    for group in plan.groups:
        current = next((g for g in found.groups if g.name == group.name), None)
        source = inline.source_of(found, current) if current is not None else None
        if source is None:
            continue
        decision = inline.decision(source)
        chosen = schedule.get(decision.key) if schedule is not None else None
        if (decision.default if chosen is None else chosen) == inline.INLINE:
            found = inline.inlined(found, source)
    return found


def decisions(plan: Plan) -> list[Decision]:
    """What can be computed where it is read."""
    found = narrowed(plan)
    sources = (inline.source_of(found, group) for group in found.groups)
    return [inline.decision(source) for source in sources if source is not None]
