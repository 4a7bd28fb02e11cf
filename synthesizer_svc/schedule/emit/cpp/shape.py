"""The shape of a row nest: which axis lies along the lanes, which rows are blocked, how far loops unroll (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.chips import Isa
from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.cpp.types import Lanes
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Value

INNER, OUTER = "inner", "outer"


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


def _offsets(group: Group) -> list[Index]:
    reads = [load.attr[1][0] for load in group.loads()]
    return reads + [w.offset for s in group.stages for w in s.writes if w is not None]


def badness(group: Group, axis: Axis) -> int:
    """How many accesses would neither be whole vectors nor shared by the lanes along ``axis``."""
    return sum(1 for offset in _offsets(group) if offset.coefficient(axis) not in (0, 1))


def outer_axis(group: Group) -> Axis | None:
    """The outer axis that suits lanes best; the last of equals."""
    if not group.outer:
        return None
    return min(reversed(group.outer), key=lambda a: (badness(group, a), 0 if a.extent >= 8 else 1))


def modes(group: Group) -> tuple[str, ...]:
    """Modes worth having, the better one first: strided vectors are left out where whole ones are possible."""
    inner = [s.inner[-1] for s in group.stages if s.inner]
    out = outer_axis(group)
    if not inner:
        return (OUTER,) if out is not None else (INNER,)
    if out is None:
        return (INNER,)
    along_rows = max(badness(group, axis) + (1 if axis.extent < 8 else 0) for axis in inner)
    along_outer = badness(group, out) + (1 if out.extent < 8 else 0)
    if along_rows == along_outer:
        return (INNER, OUTER)
    return (INNER,) if along_rows < along_outer else (OUTER,)


def block_axis(group: Group, vec: Axis | None) -> Axis | None:
    """Rows are blocked along the axis that the most vectors do not depend on: those are loaded once per block."""
    candidates = [a for a in group.outer if a != vec]
    if not candidates:
        return None
    vectors = [o for o in _offsets(group) if vec is None or o.coefficient(vec) != 0]
    return max(candidates, key=lambda a: (sum(1 for o in vectors if o.coefficient(a) == 0), group.outer.index(a)))


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
