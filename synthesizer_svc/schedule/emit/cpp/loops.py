"""Pieces of loop nests that know nothing of rows: wrapping, tails, descriptions, sizes (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.along import OUTER
from synthesizer_svc.schedule.emit.cpp.shape import Shape
from synthesizer_svc.schedule.emit.cpp.values import Frame
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.stages import Pass

STACK_BYTES_MAX = 1 << 18
"""Row buffers live on the stack of the thread."""


def looped(body: Frame, axis: Axis, parent: Frame, unroll: int = 1) -> Frame:
    """``body`` inside a loop over ``axis``."""
    out = Frame(parent=parent, bound=body.bound)
    if unroll > 1:
        out.lines.add(f"#pragma GCC unroll {unroll}")
    with out.lines.block(f"for (int64_t {axis.name} = 0; {axis.name} < {axis.extent}; ++{axis.name})"):
        out.lines.extend(body.lines.lines)
    return out


def tail_units(rest: int, lanes: int) -> list[tuple[int, int | None]]:
    """Vectors that cover ``rest`` elements: (vector, valid lanes)."""
    whole, part = divmod(rest, lanes)
    units: list[tuple[int, int | None]] = [(u, None) for u in range(whole)]
    return units + ([(whole, part)] if part else [])


def describe(loop: Pass) -> str:
    sizes = " x ".join(str(a.extent) for a in loop.inner) or "once"
    return f"{', '.join(s.op if s.kind != 'store' else 'store' for s in loop.stages)} over {sizes}"


def stageable(kept: tuple[Expr, ...], loops: tuple[Pass, ...], shape: Shape) -> bool:
    """Whether row buffers for ``kept`` fit on the stack."""
    total = 0
    for expr in kept:
        inner = next(p.inner for p in loops if expr in set(ex.walk(*(e for s in p.stages for e in s.exprs))))
        size = shape.rows * (8 if expr.dtype is DType.F64 else 4)
        for axis in inner:
            size *= axis.extent
        total += size * (shape.unroll * shape.lanes.count if shape.mode == OUTER else 1)
    return total <= STACK_BYTES_MAX
