"""Explicit prefetches of a loop body: some bytes ahead, or the same place of the next row (pure).

Hardware prefetchers stop at the end of a page and start anew at every row. A row ahead, a line is asked for while a
whole row of work is left to hide its way; lines that will be written are asked for with the intent to write.
"""

from __future__ import annotations

from collections.abc import Iterable

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.cpp.shape import Shape
from synthesizer_svc.schedule.emit.cpp.values import Copy, Frame, Values
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Stage
from synthesizer_svc.schedule.schedule import Value

NEXT_ROW, NEXT_ROW_AND_STORES = "next_row", "next_row_and_stores"
CHOICES: tuple[Value, ...] = (0, 512, 2048, NEXT_ROW, NEXT_ROW_AND_STORES)


ROW_BYTES_MAX = 1 << 17
"""Longer rows would leave a second-level cache (of half a megabyte or more) before their turn comes."""


def choices(shape: Shape, group: Group) -> tuple[Value, ...]:
    """The next row is offered where there are rows beside the lanes' axis, short enough to wait in a cache."""
    return CHOICES if shape.block is not None and _row_bytes(shape, group) <= ROW_BYTES_MAX else CHOICES[:3]


def default(shape: Shape, group: Group) -> Value:
    """What pays by default, measured on Zen 4.

    Pointwise rows are read once and at once: the next row saves a fifth to a third of the time, its stores too. The
    exponentials of softmax statistics leave memory idle, which brings the next row in for nothing. Other reductions
    lose by more instructions than they gain.
    """
    if NEXT_ROW not in choices(shape, group):
        return 0
    if any(stage.op == "softstats" for stage in group.stages):
        return NEXT_ROW
    return NEXT_ROW_AND_STORES if group.kind == "pointwise" else 0


def _row_bytes(shape: Shape, group: Group) -> int:
    rows = group.rows // shape.vec.extent if shape.vec is not None else group.rows
    return group.bytes_min // rows


def of_next_row(choice: Value) -> bool:
    return choice in (NEXT_ROW, NEXT_ROW_AND_STORES)


def prefetches(
    choice: Value, stages: Iterable[Stage], copies: list[Copy], values: Values, frame: Frame, rows: int
) -> list[str]:
    """Statements for what ``stages`` load (and store, if chosen), one for each vector of ``copies``."""
    if not choice:
        return []
    stages = tuple(stages)
    found: dict[str, None] = {}
    touched = [(load.attr[0], load.attr[1][0], "") for load in ex.loads(*(e for s in stages for e in s.exprs))]
    if choice == NEXT_ROW_AND_STORES:
        touched += [
            (w.buffer, w.offset, ", 1") for s in stages if s.kind != "reduce" for w in s.writes if w is not None
        ]
    for buffer, offset, intent in touched:
        target = _target(choice, offset, values, rows)
        if target is None:
            continue
        place, shift = target
        for copy in copies:
            address = f"(const char*)({buffer} + {values.index_text(place, copy, frame)}){shift}"
            found[f"__builtin_prefetch({address}{intent});"] = None
    return list(found)


def _target(choice: Value, offset: Index, values: Values, rows: int) -> tuple[Index, str] | None:
    """The index to fetch and bytes beyond it; None for what is not read in whole vectors, or is the same every row."""
    affine = all(isinstance(term, Axis) for term in offset.terms)
    if values.vec is None or not affine or offset.coefficient(values.vec) != 1:
        return None
    if not of_next_row(choice):
        return offset, f" + {choice}"
    step = offset.coefficient(values.block) if values.block is not None else 0
    return (offset + step * rows, "") if step else None
