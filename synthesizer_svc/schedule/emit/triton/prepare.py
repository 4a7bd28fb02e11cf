"""A plan as kernels on a GPU see it: temporaries in their types, some computed where they are read (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.emit.triton import channels_last, inline, matrix_tiles, pack, split
from synthesizer_svc.schedule.emit.triton.matrix import product_of
from synthesizer_svc.schedule.emit.triton.memory_types import narrowed
from synthesizer_svc.schedule.emit.triton.merge import merged
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Decision, Schedule


def prepared(plan: Plan, schedule: Schedule) -> Plan:
    """``plan`` under ``schedule``."""
    found = fused(plan, schedule)
    for group in found.groups:
        found = _laid_out(_packed(found, group, schedule), group.name, schedule)
    for group in found.groups:
        parts = int(schedule.get(f"{group.name}.split") or 1)
        if parts > 1 and split.fits(found, group, parts):
            found = split.split(found, group, parts)
    return found


def planned(plan: Plan) -> Plan:
    """``plan`` with temporaries in their types, and folds over the same elements together: under any schedule."""
    return merged(narrowed(plan))


def fused(plan: Plan, schedule: Schedule | None = None) -> Plan:
    """``plan`` without the temporaries that their readers compute, or do by default."""
    found = planned(plan)
    for group in found.groups:
        current = next((g for g in found.groups if g.name == group.name), None)
        source = inline.source_of(found, current) if current is not None else None
        if source is None:
            continue
        decision = inline.decision(source)
        chosen = schedule.get(decision.key) if schedule is not None else None
        if (decision.default if chosen is None else chosen) == inline.INLINE:
            found = inline.inlined(found, source)
    return found


def _packed(plan: Plan, group: Group, schedule: Schedule) -> Plan:
    product = product_of(plan, group)
    if product is None or pack.weight_of(product) is None:
        return plan
    decision = pack.decision(group.name)
    taps = schedule.get(f"{group.name}.taps") or matrix_tiles.taps_default(product)
    chosen = schedule.get(decision.key) or decision.default
    packs = chosen == pack.PACKED and taps == matrix_tiles.UNROLLED
    return pack.packed(plan, group) if packs else plan


def _laid_out(plan: Plan, name: str, schedule: Schedule) -> Plan:
    group = next(g for g in plan.groups if g.name == name)
    product = product_of(plan, group)
    if product is None:
        return plan
    taps = schedule.get(f"{name}.taps") or matrix_tiles.taps_default(product)
    chosen = schedule.get(f"{name}.{channels_last.KEY}")
    wanted = chosen == channels_last.LAST and taps == matrix_tiles.UNROLLED
    return channels_last.laid_out(plan, group) if wanted else plan


def decisions(plan: Plan) -> list[Decision]:
    """What can be computed where it is read."""
    found = planned(plan)
    sources = (inline.source_of(found, group) for group in found.groups)
    return [inline.decision(source) for source in sources if source is not None]


def window_decisions(plan: Plan, group: Group) -> list[Decision]:
    """Whether the weights and the input of a window are laid out anew."""
    product = product_of(plan, group)
    if product is None:
        return []
    weights = [pack.decision(group.name)] if pack.weight_of(product) is not None else []
    found = channels_last.input_of(plan, product)
    if found is None:
        return weights
    return [*weights, channels_last.decision(product, plan.buffer(found.load.attr[0]).dtype.itemsize)]
