"""Which axes of a group lie along which dimension of its tiles (pure).

A tile is rows by columns. Columns run over a row's elements, or, in a group without any, over its last axes; rows over
the other axes of the domain, flattened. Of the rows' axes the one along which memory is contiguous comes last, so that
a transposition reads whole lines on one side and writes whole lines on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Stage

FEW = 32
"""A last axis shorter than a warp is no row of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``rows`` and ``columns`` are flattened row-major. ``inner``: columns are a row's elements, which are folded."""

    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    inner: bool
    across: bool
    """Neighbouring rows, not neighbouring columns, are neighbours in memory."""

    @property
    def row_count(self) -> int:
        return prod(a.extent for a in self.rows)

    @property
    def column_count(self) -> int:
        return prod(a.extent for a in self.columns)


def layout_of(group: Group, *, ones: bool = False) -> Layout:
    """The layout of a group that is no matrix product. ``ones``: folds of rows of one element are folds, too, where
    they tell more than that element; languages whose folds are loops need not ask.
    """
    inner = [s.inner for s in group.stages if s.inner or (ones and _folds_one(s))]
    if inner:
        longest = max(inner, key=lambda axes: prod(a.extent for a in axes))
        rows = _contiguous_last(group, group.outer)
        along = max((_units(group, a) for a in longest), default=0)
        across = bool(rows) and _units(group, rows[-1]) > along and rows[-1].extent > 1
        return Layout(rows=rows, columns=longest, inner=True, across=across)
    if not group.outer or group.outer[-1].extent < FEW or len(group.outer) == 1:
        return Layout(rows=(), columns=group.outer, inner=False, across=False)
    rows = _contiguous_last(group, group.outer[:-1])
    return Layout(rows=rows, columns=group.outer[-1:], inner=False, across=_units(group, rows[-1]) > 0)


def _folds_one(stage: Stage) -> bool:
    """Whether it folds rows of one element into more than that element: several results, or where it is."""
    return stage.kind == "reduce" and not stage.inner and max(len(stage.writes), len(stage.exprs)) > 1


def _contiguous_last(group: Group, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """``axes`` with the most contiguous one moved to the end, if it is long enough to matter."""
    if not axes:
        return axes
    best = max(reversed(axes), key=lambda a: _units(group, a) if a.extent >= 8 else 0)
    if not _units(group, best) or best.extent < 8:
        return axes
    return (*(a for a in axes if a != best), best)


def _units(group: Group, axis: Axis) -> int:
    """How many elements are accessed contiguously along ``axis``."""
    return sum(prod(a.extent for a in offset.axes()) for offset in offsets(group) if offset.coefficient(axis) == 1)


def offsets(group: Group) -> list[Index]:
    reads: list[Index] = [load.attr[1][0] for load in group.loads()]
    return reads + [w.offset for s in group.stages for w in s.writes if w is not None]
