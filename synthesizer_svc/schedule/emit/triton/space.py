"""The decisions of a plan in Triton on a GPU (pure)."""

from __future__ import annotations

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.triton import matrix, matrix_tiles, prepare, space_rows
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.schedule import Decision, Space


def space(plan: Plan, gpu: Gpu) -> Space:
    """All decisions of ``plan``. A group that is computed by its readers by default keeps those of its own kernel."""
    default = {group.name: group for group in prepare.prepared(plan).groups}
    found = prepare.decisions(plan)
    narrow = prepare.narrowed(plan)
    for group in narrow.groups:
        found += _group(narrow, default.get(group.name, group), gpu)
    return Space(decisions=tuple(found))


def _group(plan: Plan, group: Group, gpu: Gpu) -> list[Decision]:
    product = matrix.product_of(plan, group)
    return space_rows.decisions(group, gpu) if product is None else matrix_tiles.decisions(product, gpu)
