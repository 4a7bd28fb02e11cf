"""Along which axis vectors lie: the row, or neighbouring rows. Every language of vectors asks the same (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group

INNER, OUTER = "inner", "outer"
"""Lanes along the row: results of reductions are scalars. Lanes across neighbouring rows: they are vectors."""


def offsets(group: Group) -> list[Index]:
    """Element offsets of everything that is read or written."""
    reads = [load.attr[1][0] for load in group.loads()]
    return reads + [w.offset for s in group.stages for w in s.writes if w is not None]


def badness(group: Group, axis: Axis) -> int:
    """How many accesses would neither be whole vectors nor shared by the lanes along ``axis``."""
    return sum(1 for offset in offsets(group) if offset.coefficient(axis) not in (0, 1))


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
    vectors = [o for o in offsets(group) if vec is None or o.coefficient(vec) != 0]
    return max(candidates, key=lambda a: (sum(1 for o in vectors if o.coefficient(a) == 0), group.outer.index(a)))
