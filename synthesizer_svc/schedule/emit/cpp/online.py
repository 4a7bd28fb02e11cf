"""Online softmax statistics: maximum and sum of exponentials chunk by chunk (pure).

Each chunk is read from memory once and then from the cache: its maximum first, then the exponentials against the
maximum so far, rescaling what was summed before when the maximum rises (Milakov & Gimelshein, arXiv:1805.02867).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.cpp import reduce as rd
from synthesizer_svc.schedule.emit.cpp.loops import tail_units
from synthesizer_svc.schedule.emit.cpp.types import SCALAR
from synthesizer_svc.schedule.emit.cpp.values import Copy, Frame
from synthesizer_svc.schedule.ir import Stage

if TYPE_CHECKING:
    from synthesizer_svc.schedule.emit.cpp.nest import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statistics:
    """C++ variables of one row's running maximum and sum."""

    stage: Stage
    row: int

    @property
    def top(self) -> str:
        return f"{self.stage.name}_top{self.row}"

    @property
    def total(self) -> str:
        return f"{self.stage.name}_sum{self.row}"


def emit_online(row: Row, stage: Stage, frame: Frame) -> None:
    """Both components of ``stage`` for every row of the block, one row after the other."""
    vec, lanes, t = stage.inner[-1], row.shape.lanes.count, SCALAR[stage.dtype]
    row.set_lane_axis(vec)
    unroll = max(1, min(row.shape.unroll, vec.extent // lanes))
    step = lanes * unroll
    main = vec.extent // step * step
    size = max(step, int(row.choices.get("chunk", 1024)) // step * step)
    for number in range(row.rows):
        running = _Statistics(stage=stage, row=number)
        frame.lines.add(f"{t} {running.top} = ({t})-INFINITY, {running.total} = 0;")
        if main:
            inside = Frame(parent=frame, bound=frozenset(stage.inner), holds_rows=True)
            head = f"for (int64_t {vec.name} = chunk; {vec.name} < chunk_end; {vec.name} += {step})"
            _chunk(row, running, [Copy(number, u) for u in range(unroll)], head, inside)
            with frame.lines.block(f"for (int64_t chunk = 0; chunk < {main}; chunk += {size})"):
                frame.lines.add(f"const int64_t chunk_end = chunk + {size} < {main} ? chunk + {size} : {main};")
                frame.lines.extend(inside.lines.lines)
        units = tail_units(vec.extent - main, lanes)
        if units:
            inside = Frame(parent=frame, bound=frozenset(stage.inner), holds_rows=True)
            _chunk(row, running, [Copy(number, u, part) for u, part in units], "", inside)
            with frame.lines.block(""):
                frame.lines.add(f"constexpr int64_t {vec.name} = {main};")
                frame.lines.extend(inside.lines.lines)
        row.body.result(stage, 0, running.top, Copy(number), frame)
        row.body.result(stage, 1, running.total, Copy(number), frame)
    row.set_lane_axis(row.shape.vec)


def _chunk(row: Row, running: _Statistics, copies: list[Copy], head: str, frame: Frame) -> None:
    stage, t = running.stage, SCALAR[running.stage.dtype]
    x, pivot = stage.exprs[0], row.values.fresh("c")
    row.values.rows[pivot, 0] = pivot
    shifted = ex.make("sub", x, ex.make("row", attr=(pivot, 0), dtype=stage.dtype), dtype=x.dtype)
    maximum = _fold(row, _like(stage, f"{pivot}max", "max_raw", x), copies, head, frame)
    frame.lines.add(f"const {t} {pivot}_new = ke_max_raw({maximum}, {running.top});")
    # A row that is -inf so far has no sum yet; its pivot must stay finite.
    frame.lines.add(f"const {t} {pivot}_{running.row} = {pivot}_new == ({t})-INFINITY ? ({t})0 : {pivot}_new;")
    rescale = f"{running.total} *= ke_exp({running.top} - {pivot}_{running.row}); {running.top} = {pivot}_new;"
    frame.lines.add(f"if ({pivot}_new > {running.top}) {{ {rescale} }}")
    exponentials = _like(stage, f"{pivot}exp", "sum", ex.make("exp_nonpositive", shifted, dtype=x.dtype))
    frame.lines.add(f"{running.total} += {_fold(row, exponentials, copies, head, frame)};")


def _fold(row: Row, part: Stage, copies: list[Copy], head: str, frame: Frame) -> str:
    """One reduction over the chunk; the C++ expression of its result."""
    units = sorted({c.unit % row.shape.accumulators for c in copies})
    accumulators = [row.body.accumulator(part, Copy(copies[0].row, u)) for u in units]
    for name in accumulators:
        frame.lines.extend(rd.declare(part, name, row.shape.lanes))
    body = Frame(parent=frame, bound=frozenset(part.inner), holds_rows=True)
    row.body.run((part,), copies, body)
    with frame.lines.block(head):
        frame.lines.extend(body.lines.lines)
    lines, text = rd.fold(part, accumulators)
    frame.lines.extend(lines)
    return text


def _like(stage: Stage, name: str, op: str, expr: ex.Expr) -> Stage:
    return Stage(name=name, kind="reduce", op=op, inner=stage.inner, exprs=(expr,), dtype=stage.dtype, writes=(None,))
