"""The shape of a row nest: which axis lies along lanes, how wide register groups are, how far loops unroll (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synthesizer_svc.schedule.emit.along import INNER, OUTER, block_axis, modes, offsets, outer_axis
from synthesizer_svc.schedule.emit.rvv.types import LMULS, REGISTERS, RegisterGroup
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group
from synthesizer_svc.schedule.schedule import Value

NARROW = 8
"""Rows side by side below which most lanes would have nothing to do."""
DEEP = 1024
"""Products of a sum from which folding it over the lanes is a small part of the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """``INNER``: lanes run along a row, results of reductions are scalars. ``OUTER``: lanes hold neighbouring rows,
    results are vectors; ``vec`` is then the outer axis they are neighbours along. ``block`` is the axis of row blocks.

    ``once``: the length of strips is set before their loop, wherever strips of whole register groups fit the loop.
    """

    mode: str
    group: RegisterGroup
    vlen: int
    vec: Axis | None
    block: Axis | None
    others: tuple[Axis, ...]
    rows: int
    unroll: int
    accumulators: int
    once: bool

    @property
    def elements(self) -> int:
        """Of one strip."""
        return self.group.elements(self.vlen)

    def sets_once(self, extent: int) -> bool:
        """Strips of ``extent`` elements all have one length."""
        return self.once and fits_whole(extent, self.elements)

    def units(self, extent: int) -> int:
        """Strips in one turn of a loop over ``extent`` elements."""
        strips = -(-extent // self.elements)
        if not self.sets_once(extent):
            return min(self.unroll, strips)
        return max(u for u in range(1, self.unroll + 1) if strips % u == 0)


def fits_whole(extent: int, elements: int) -> bool:
    return extent % elements == 0 or extent < elements


def usable_modes(group: Group) -> tuple[str, ...]:
    """Modes in which every access is a vector at one distance from lane to lane, the better one first.

    Raises:
        Unsupported: there is none.
    """
    found = tuple(mode for mode in _worthwhile(group) if _regular(group, mode))
    if not found:
        raise Unsupported("index", "lanes at irregular distances are not written for the vector extension")
    return found


def _worthwhile(group: Group) -> tuple[str, ...]:
    """Those of ``along.modes``. A product of short rows has lanes across them even where that takes strided vectors:
    to fold every sum over its lanes costs more.
    """
    found, out = modes(group), outer_axis(group)
    depth = max((s.inner_size for s in group.stages if s.contraction), default=0)
    if not depth or OUTER in found or out is None or out.extent < NARROW:
        return found
    return (OUTER, INNER) if depth < DEEP else (INNER, OUTER)


def _regular(group: Group, mode: str) -> bool:
    axes = {s.inner[-1] for s in group.stages if s.inner} if mode == INNER else {outer_axis(group)}
    return all(offset.coefficient(axis) is not None for offset in offsets(group) for axis in axes if axis is not None)


def longest(group: Group, mode: str) -> int:
    """Elements along the lanes."""
    vec = outer_axis(group) if mode == OUTER else None
    return vec.extent if vec is not None else max((s.inner[-1].extent for s in group.stages if s.inner), default=1)


def lmul_enough(extent: int, vlen: int, most: int) -> int:
    """The smallest register group that holds ``extent`` elements, at most ``most``."""
    return next((m for m in LMULS if m >= most or RegisterGroup(m).elements(vlen) >= extent), most)


def shape_of(group: Group, choices: Mapping[str, Value], vlen: int) -> Shape:
    """The nest under a schedule; counts are cut to what extents and registers allow."""
    possible = usable_modes(group)
    mode = str(choices.get("lanes", possible[0]))
    mode = mode if mode in possible else possible[0]
    registers = RegisterGroup(int(choices.get("lmul", 1)))
    vec = outer_axis(group) if mode == OUTER else None
    block = block_axis(group, vec) if mode == OUTER else (group.outer[-1] if group.outer else None)
    strips = -(-longest(group, mode) // registers.elements(vlen))
    unroll = max(1, min(int(choices.get("unroll", 1)), strips))
    # One group stays free for what is read, unless a group is a quarter of all.
    sums = max(1, REGISTERS // registers.lmul - 1)
    accumulators = max(1, min(int(choices.get("accumulators", unroll)), unroll, sums))
    each = unroll if mode == OUTER else accumulators
    rows = max(1, min(int(choices.get("rows", 1)), block.extent if block is not None else 1, max(1, sums // each)))
    return Shape(
        mode=mode,
        group=registers,
        vlen=vlen,
        vec=vec,
        block=block,
        others=tuple(a for a in group.outer if a not in (vec, block)),
        rows=rows,
        unroll=unroll,
        accumulators=accumulators,
        once=choices.get("length") == "once",
    )
