"""Contraction groups: recognising the specification in a row group, and its fused epilogue (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shared.chips import Isa
from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.along import OUTER
from synthesizer_svc.schedule.emit.cpp.body import Body
from synthesizer_svc.schedule.emit.cpp.contraction import decisions, emit_contraction
from synthesizer_svc.schedule.emit.cpp.contraction_spec import Access, ContractionSpec, Lanes, Window, WindowAxis
from synthesizer_svc.schedule.emit.cpp.shape import Shape
from synthesizer_svc.schedule.emit.cpp.types import MEMORY_NAMES
from synthesizer_svc.schedule.emit.cpp.types import Lanes as VectorLanes
from synthesizer_svc.schedule.emit.cpp.values import Copy, Frame, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """A contraction found in a group: operands as (buffer, first element), and which axis is which."""

    spec: ContractionSpec
    a: tuple[str, int]
    b: tuple[str, int]
    batch: tuple[Axis, ...]
    row: Axis | None
    cols: tuple[Axis, ...]
    stage: Stage
    epilogue: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operand:
    buffer: str
    offset: Index

    def step(self, axis: Axis | None) -> int:
        return self.offset.coefficient(axis) or 0 if axis is not None else 0


def match(plan: Plan, group: Group) -> Matched | None:
    """The contraction that ``group`` is, if the packed emitter can write it; None leaves it to the row nest."""
    stage, *rest = group.stages
    if not stage.contraction or stage.op != "sum" or any(s.kind != "value" for s in rest):
        return None
    operands = _operands(plan, stage)
    if operands is None:
        return None
    return _matrix(group, stage, tuple(rest), *operands) or _convolution(plan, group, stage, tuple(rest), *operands)


def _operands(plan: Plan, stage: Stage) -> tuple[_Operand, _Operand] | None:
    product = stage.exprs[0]
    if product.op != "mul" or any(e.op != "load" for e in product.args) or product.dtype not in (DType.F32, DType.F64):
        return None
    found = []
    for load in product.args:
        buffer, (offset,), _ = load.attr
        affine = all(isinstance(term, Axis) for term in offset.terms)
        if not affine or plan.buffer(buffer).dtype is not product.dtype or load.dtype is not product.dtype:
            return None
        found.append(_Operand(buffer=buffer, offset=offset))
    return found[0], found[1]


def _written(stages: tuple[Stage, ...]) -> Index | None:
    return next((w.offset for s in reversed(stages) for w in s.writes if w is not None), None)


def _matrix(group: Group, stage: Stage, rest: tuple[Stage, ...], x: _Operand, y: _Operand) -> Matched | None:
    if len(stage.inner) != 1:
        return None
    out = _written((stage, *rest))
    k = stage.inner[0]
    only_x = [a for a in group.outer if x.step(a) and not y.step(a)]
    only_y = [a for a in group.outer if y.step(a) and not x.step(a)]
    if out is None or any(not x.step(a) and not y.step(a) for a in group.outer):
        return None
    if any(out.coefficient(a) == 1 for a in only_x):
        x, y, only_x, only_y = y, x, only_y, only_x
    row, col = (max(axes, key=lambda a: a.extent, default=None) for axes in (only_x, only_y))
    batch = tuple(a for a in group.outer if a not in (row, col))
    spec = ContractionSpec(
        batch=tuple(a.extent for a in batch),
        m=row.extent if row else 1,
        n=col.extent if col else 1,
        k=k.extent,
        a=Access(batch=tuple(x.step(a) for a in batch), row=x.step(row), col=x.step(k)),
        b=Access(batch=tuple(y.step(a) for a in batch), row=y.step(k), col=y.step(col)),
        c=Access(batch=tuple(0 for _ in batch), row=0, col=0),
        dtype=stage.exprs[0].dtype,
    )
    return Matched(
        spec=spec,
        a=(x.buffer, x.offset.const),
        b=(y.buffer, y.offset.const),
        batch=batch,
        row=row,
        cols=(col,) if col else (),
        stage=stage,
        epilogue=rest,
    )


def _convolution(
    plan: Plan, group: Group, stage: Stage, rest: tuple[Stage, ...], image: _Operand, weight: _Operand
) -> Matched | None:
    """Windows over a (padded) image: each output axis pairs with a tap axis along one dimension of the image."""
    if stage.exprs[0].dtype is not DType.F32 or len(stage.inner) < 2:
        return None
    channel, *taps = stage.inner
    places = [a for a in group.outer if image.step(a) and not weight.step(a)][-len(taps) :]
    rows = [a for a in group.outer if weight.step(a) and not image.step(a)]
    windows = _windows(plan.buffer(image.buffer), image, places, taps)
    inner = list(reversed([weight.step(a) * 1 for a in stage.inner]))
    if (
        windows is None
        or len(rows) != 1
        or group.outer[-len(places) :] != tuple(places)
        or not _dense(stage.inner, inner)
    ):
        return None
    batch = tuple(a for a in group.outer if a not in places and a != rows[0])
    window = Window(channels=channel.extent, channel_stride=image.step(channel), axes=windows)
    spec = ContractionSpec(
        batch=tuple(a.extent for a in batch),
        m=rows[0].extent,
        n=window.n,
        k=window.k,
        a=Access(batch=tuple(weight.step(a) for a in batch), row=weight.step(rows[0]), col=1),
        b=Access(batch=tuple(image.step(a) for a in batch), row=0, col=0),
        c=Access(batch=tuple(0 for _ in batch), row=0, col=0),
        window=window,
    )
    return Matched(
        spec=spec,
        a=(weight.buffer, weight.offset.const),
        b=(image.buffer, image.offset.const),
        batch=batch,
        row=rows[0],
        cols=tuple(places),
        stage=stage,
        epilogue=rest,
    )


def _dense(inner: tuple[Axis, ...], steps: list[int]) -> bool:
    """Whether (channel, taps…) is one contiguous run of the weight."""
    expected = 1
    for axis, step in zip(reversed(inner), steps, strict=True):
        if step != expected:
            return False
        expected *= axis.extent
    return True


def _windows(buffer: Buffer, image: _Operand, places: list[Axis], taps: list[Axis]) -> tuple[WindowAxis, ...] | None:
    if len(places) != len(taps) or len(taps) > 3:
        return None
    dims = range(len(buffer.shape) - len(taps), len(buffer.shape))
    found = []
    for dim, place, tap in zip(dims, places, taps, strict=True):
        stride, extent = buffer.strides[dim], buffer.shape[dim]
        step, dilation = image.step(place), image.step(tap)
        if step % stride or dilation % stride:
            return None
        axis = WindowAxis(
            extent=extent,
            stride=stride,
            out=place.extent,
            taps=tap.extent,
            step=step // stride,
            dilation=dilation // stride,
        )
        if axis.padded > extent or axis.step < 1 or axis.dilation < 1:
            return None
        found.append(axis)
    return tuple(found)


def contraction_decisions(matched: Matched, isa: Isa, threads: int, group: str) -> tuple[Decision, ...]:
    return decisions(matched.spec, isa, threads, group)


def emit(matched: Matched, plan: Plan, group: Group, choices: Mapping[str, Value], isa: Isa, threads: int) -> str:
    """The contraction and the function ``group.name`` that calls it on the group's buffers."""
    reads = list(dict.fromkeys(load.attr[0] for load in group.loads()))
    writes = list(dict.fromkeys(w.buffer for s in group.stages for w in s.writes if w is not None))
    parameters = [f"const {_memory(plan, b)}* __restrict {b}" for b in reads] + [
        f"{_memory(plan, b)}* __restrict {b}" for b in writes
    ]
    stored = plain_store(plan, matched)
    text = emit_contraction(
        matched.spec if stored is None else replace(matched.spec, c=stored[1]),
        choices,
        isa,
        threads,
        epilogue=None if stored else lambda lanes: _epilogue(matched, isa.vector_bits, lanes),
        params=tuple(parameters),
        name=f"{group.name}_product",
    )
    extents = f"m={matched.spec.m} n={matched.spec.n} k={matched.spec.k} batch={list(matched.spec.batch)}"
    chosen = ", ".join(f"{k}={v}" for k, v in sorted(choices.items()))
    target = _pointer(stored[0]) if stored else "nullptr"
    arguments = ", ".join([_pointer(matched.a), _pointer(matched.b), target, *reads, *writes])
    return (
        f"// {group.name}: contraction {extents}; {chosen}\n{text}\n"
        f"static void {group.name}({', '.join(parameters)}) {{\n  {group.name}_product({arguments});\n}}\n"
    )


def plain_store(plan: Plan, matched: Matched) -> tuple[tuple[str, int], Access] | None:
    """(buffer, first element) and strides of C, where the sums themselves leave and their rows are contiguous."""
    write = _only_write(matched)
    if write is None or plan.buffer(write.buffer).dtype is not matched.spec.dtype:
        return None
    steps = {axis: write.offset.coefficient(axis) for axis in (*matched.batch, *matched.cols)}
    row = write.offset.coefficient(matched.row) if matched.row is not None else 0
    expected = 1
    for axis in reversed(matched.cols):
        if steps[axis] != expected:
            return None
        expected *= axis.extent
    batch = tuple(steps[axis] for axis in matched.batch)
    if row is None or None in batch:
        return None
    strides = tuple(step for step in batch if step is not None)
    return (write.buffer, write.offset.const), Access(batch=strides, row=row, col=1)


def _only_write(matched: Matched) -> Write | None:
    """Where the sums go when that is all that happens to them: they leave by themselves, or a stage copies them."""
    if not matched.epilogue:
        return matched.stage.writes[0]
    copy, *more = matched.epilogue
    unchanged = copy.exprs[0].op == "row" and copy.exprs[0].attr == (matched.stage.name, 0)
    return copy.writes[0] if unchanged and not more and matched.stage.writes[0] is None else None


def _memory(plan: Plan, buffer: str) -> str:
    dtype = plan.buffer(buffer).dtype
    return MEMORY_NAMES.get(dtype, dtype.c_type)


def _pointer(operand: tuple[str, int]) -> str:
    buffer, first = operand
    return f"{buffer} + {first}" if first else buffer


def _epilogue(matched: Matched, bits: int, place: Lanes) -> str:
    """Everything that follows the sum, on one vector of it, and the stores."""
    col = matched.cols[-1] if len(matched.cols) == 1 else None
    flat = Axis("col_at", matched.spec.n)
    doubles = matched.spec.dtype is DType.F64
    lanes = VectorLanes(count=bits // (64 if doubles else 32), doubles=doubles)
    shape = Shape(mode=OUTER, lanes=lanes, vec=col or flat, block=None, others=(), rows=1, unroll=1, accumulators=1)
    values = Values(lanes=lanes, vec=shape.vec, block=None, vector_rows=True)
    frame = Frame(holds_rows=True)
    for axis, name in zip(matched.batch, place.batch, strict=True):
        frame.lines.add(f"const int64_t {axis.name} = {name};")
    if matched.row is not None:
        frame.lines.add(f"const int64_t {matched.row.name} = {place.row};")
    frame.lines.add(f"const int64_t {(col or flat).name} = {place.col};")
    body = Body(shape=shape, values=values, choices={})
    copy = Copy(0, 0, place.count)
    stages = (matched.stage, *matched.epilogue)
    if col is None and matched.cols:
        stages = tuple(_flattened(s, matched.cols, flat) for s in stages)
    body.result(stages[0], 0, place.value, copy, frame)
    for stage in stages[1:]:
        body.value(stage, copy, frame)
    return "\n".join(frame.lines.lines)


def _flattened(stage: Stage, cols: tuple[Axis, ...], flat: Axis) -> Stage:
    """Output positions as one axis: ``(h, w)`` becomes ``(col / W, col % W)``, or stays affine."""
    places = dict(zip(cols, ix.unravel(ix.of(flat), tuple(a.extent for a in cols)), strict=True))
    memo: dict[Expr, Expr] = {}

    def inside(e: object) -> Expr:
        return ex.rewrite(e, places, memo=memo)  # type: ignore[arg-type]

    return replace(
        stage,
        exprs=tuple(inside(e) for e in stage.exprs) if stage.kind == "value" else stage.exprs,
        writes=tuple(
            None if w is None else Write(buffer=w.buffer, offset=w.offset.substitute(places, inside))
            for w in stage.writes
        ),
    )
