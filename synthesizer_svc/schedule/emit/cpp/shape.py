"""The shape of a row nest: which axis lies along the lanes, which rows are blocked, how far loops unroll (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.chips import Isa
from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.along import OUTER, block_axis, modes, outer_axis
from synthesizer_svc.schedule.emit.cpp.types import Lanes
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """``INNER``: lanes run along a row, results of reductions are scalars. ``OUTER``: lanes hold neighbouring rows,
    results are vectors; ``vec`` is then the outer axis they are neighbours along. ``block`` is the axis of row blocks.
    """

    mode: str
    lanes: Lanes
    vec: Axis | None
    block: Axis | None
    others: tuple[Axis, ...]
    rows: int
    unroll: int
    accumulators: int


def lanes_of(group: Group, bits: int) -> Lanes:
    """Doubles set the lane count as soon as the group computes with them."""
    wide = any(e.dtype is DType.F64 for s in group.stages for e in ex.walk(*s.exprs))
    return Lanes(count=bits // (64 if wide else 32), doubles=wide)


def vector_bits(isa: Isa, choices: Mapping[str, Value]) -> int:
    return int(choices.get("vector_bits", isa.vector_bits))


def shape_of(group: Group, choices: Mapping[str, Value], bits: int) -> Shape:
    """The nest under a schedule; counts are cut to what the extents allow."""
    possible = modes(group)
    mode = str(choices.get("lanes", possible[0]))
    mode = mode if mode in possible else possible[0]
    lanes = lanes_of(group, bits)
    vec = outer_axis(group) if mode == OUTER else None
    block = block_axis(group, vec) if mode == OUTER else (group.outer[-1] if group.outer else None)
    longest = vec.extent if vec is not None else max((s.inner[-1].extent for s in group.stages if s.inner), default=1)
    unroll = max(1, min(int(choices.get("unroll", 1)), longest // lanes.count))
    rows = max(1, min(int(choices.get("rows", 1)), block.extent if block is not None else 1))
    return Shape(
        mode=mode,
        lanes=lanes,
        vec=vec,
        block=block,
        others=tuple(a for a in group.outer if a not in (vec, block)),
        rows=rows,
        unroll=unroll,
        accumulators=max(1, min(int(choices.get("accumulators", unroll)), unroll)),
    )
