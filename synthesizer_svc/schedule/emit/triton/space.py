"""The decisions of a plan in Triton on a GPU (pure)."""

from __future__ import annotations

from shared.chips import Gpu
from synthesizer_svc.schedule.emit.triton import space_rows
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Space


def space(plan: Plan, gpu: Gpu) -> Space:
    """All decisions of ``plan``."""
    return Space(decisions=tuple(d for group in plan.groups for d in space_rows.decisions(group, gpu)))
