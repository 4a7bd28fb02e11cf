"""The decisions of a plan in Triton on a GPU (pure)."""

from __future__ import annotations

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.triton import chain, matrix, matrix_tiles, prepare, space_rows, split
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Decision, Space


def space(plan: Plan, gpu: Gpu) -> Space:
    """All decisions of ``plan``. A group that is computed by its readers by default keeps those of its own kernel."""
    usual = prepare.fused(plan)
    default = {group.name: group for group in usual.groups}
    found = prepare.decisions(plan)
    narrow = prepare.planned(plan)
    for group in narrow.groups:
        found += kernel_decisions(narrow, default.get(group.name, group), gpu)
    for group in usual.groups:
        found += prepare.window_decisions(usual, group)
        parts = split.decision(usual, group, gpu)
        found += [parts] if parts is not None else []
    for place in range(len(usual.groups)):
        two = chain.chain_of(usual, place)
        found += chain.decisions(two, gpu) if two is not None else []
    return Space(decisions=tuple(found))


def kernel_decisions(plan: Plan, group: Group, gpu: Gpu) -> list[Decision]:
    """Those about the kernel of one group."""
    product = matrix.product_of(plan, group)
    if product is None:
        return space_rows.decisions(group, gpu)
    return matrix_tiles.decisions(product, {b.name: b for b in plan.buffers}, gpu)
