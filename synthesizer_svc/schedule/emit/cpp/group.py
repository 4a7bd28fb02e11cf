"""One row group as one C++ function (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared.chips import Isa
from synthesizer_svc.schedule.emit.along import INNER, OUTER
from synthesizer_svc.schedule.emit.cpp import contract
from synthesizer_svc.schedule.emit.cpp.loops import stageable, tail_units
from synthesizer_svc.schedule.emit.cpp.nest import Row
from synthesizer_svc.schedule.emit.cpp.prefetch import prefetches
from synthesizer_svc.schedule.emit.cpp.shape import Shape, shape_of
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.emit.cpp.types import MEMORY_NAMES
from synthesizer_svc.schedule.emit.cpp.values import Copy, Frame
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.stages import Pass, expanded, passes, staging_candidates


def memory_type(buffer: Buffer) -> str:
    return MEMORY_NAMES.get(buffer.dtype, buffer.dtype.c_type)


def buffers_of(plan: Plan, group: Group) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers a group reads and writes, in order of first use."""
    reads = dict.fromkeys(load.attr[0] for load in group.loads())
    writes = dict.fromkeys(w.buffer for s in group.stages for w in s.writes if w is not None)
    return [plan.buffer(b) for b in reads], [plan.buffer(b) for b in writes]


def emit_group(plan: Plan, group: Group, choices: Mapping[str, Value], isa: Isa, threads: int) -> str:
    """The function of ``group``: a packed contraction where it is one, a row nest otherwise."""
    matched = contract.match(plan, group)
    if matched is not None:
        return contract.emit(matched, plan, group, choices, isa, threads)
    return emit_rows(plan, group, choices, isa.vector_bits, threads)


def emit_rows(plan: Plan, group: Group, choices: Mapping[str, Value], bits: int, threads: int) -> str:
    """The function of ``group`` under ``choices``; it takes the group's buffers as pointers."""
    shape = shape_of(group, choices, bits)
    loops = passes(expanded(_along_something(group) if shape.mode == INNER else group, choices))
    kept = _kept(loops, shape, choices)
    reads, writes = buffers_of(plan, group)
    out = Lines()
    out.add(f"// {group.name}: {group.kind}, {group.rows} rows; {_described(shape, choices)}")
    parameters = [f"const {memory_type(b)}* __restrict {b.name}" for b in reads]
    parameters += [f"{memory_type(b)}* __restrict {b.name}" for b in writes]
    root = Frame()
    streamed = frozenset(b.name for b in writes) if choices.get("store") == "stream" else frozenset()
    row = Row(shape=shape, loops=loops, choices=choices, root=root, streamed=streamed, kept=kept)
    nest = Lines()
    _rows(nest, group, shape, row, threads)
    with out.block(f"static void {group.name}({', '.join(parameters)})"):
        out.extend(root.lines.lines)
        out.extend(nest.lines)
        if streamed:
            out.add("_mm_sfence();")
    return out.text()


ONE = Axis("one", 1)
"""What lanes lie along in a row of one element."""


def _along_something(group: Group) -> Group:
    """``group`` with an axis to every loop over a row: rows of one element have none."""
    stages = tuple(s if s.inner or s.kind == "value" else replace(s, inner=(ONE,)) for s in group.stages)
    return replace(group, stages=stages)


def _kept(loops: tuple[Pass, ...], shape: Shape, choices: Mapping[str, Value]) -> tuple[Expr, ...]:
    candidates = staging_candidates(loops) if choices.get("staging") == "buffer" else ()
    return candidates if candidates and stageable(candidates, loops, shape) else ()


def _described(shape: Shape, choices: Mapping[str, Value]) -> str:
    along = f"lanes across rows ({shape.vec.name})" if shape.mode == OUTER and shape.vec else "lanes along the row"
    chosen = ", ".join(f"{k}={v}" for k, v in sorted(choices.items()))
    return f"{along}; {chosen}"


def _rows(out: Lines, group: Group, shape: Shape, row: Row, threads: int) -> None:
    """Loops over rows: single rows outside, then blocks of rows, then vectors along an outer axis."""
    bound = frozenset(group.outer)
    heads = [f"for (int64_t {a.name} = 0; {a.name} < {a.extent}; ++{a.name})" for a in shape.others]
    nest = Lines()
    _blocks(nest, shape, row, bound, omp=threads > 1 and not heads)
    if threads > 1 and heads:
        out.add(_pragma(len(heads)))
    for head in heads:
        out.add(head + " {")
        out.indent += 1
    out.extend(nest.lines)
    for _ in heads:
        out.indent -= 1
        out.add("}")


def _pragma(depth: int) -> str:
    return "#pragma omp parallel for schedule(static)" + (f" collapse({depth})" if depth > 1 else "")


def _blocks(out: Lines, shape: Shape, row: Row, bound: frozenset[Axis], *, omp: bool) -> None:
    axis = shape.block
    if axis is None:
        _vectors(out, shape, row, bound, 1, omp=omp)
        return
    whole = axis.extent // shape.rows * shape.rows
    if omp and whole > shape.rows:
        out.add(_pragma(1))
    with out.block(f"for (int64_t {axis.name} = 0; {axis.name} < {whole}; {axis.name} += {shape.rows})"):
        _vectors(out, shape, row, bound, shape.rows, omp=omp and whole == shape.rows)
    if whole < axis.extent:
        with out.block(f"for (int64_t {axis.name} = {whole}; {axis.name} < {axis.extent}; ++{axis.name})"):
            _vectors(out, shape, row, bound, 1, omp=False)


def _vectors(out: Lines, shape: Shape, row: Row, bound: frozenset[Axis], rows: int, *, omp: bool) -> None:
    """Along an outer vector axis: unrolled whole vectors in a loop, then what is left."""
    if shape.mode != OUTER or shape.vec is None:
        out.extend(row.emit(bound, rows, [(0, None)]).lines.lines)
        return
    vec, lanes = shape.vec, shape.lanes.count
    step = lanes * shape.unroll
    main = vec.extent // step * step
    if main:
        body = row.emit(bound, rows, [(u, None) for u in range(shape.unroll)])
        if omp and main > step:
            out.add(_pragma(1))
        with out.block(f"for (int64_t {vec.name} = 0; {vec.name} < {main}; {vec.name} += {step})"):
            _prefetch(row, out)
            out.extend(body.lines.lines)
    units = tail_units(vec.extent - main, lanes)
    if units:
        body = row.emit(bound, rows, units)
        with out.block(""):
            out.add(f"constexpr int64_t {vec.name} = {main};  // the last {vec.extent - main} of {vec.extent}")
            out.extend(body.lines.lines)


def _prefetch(row: Row, out: Lines) -> None:
    """Pointwise groups: fetch ahead along the vector axis, or in the next row."""
    if any(loop.stages for loop in row.loops):
        return
    stages = [s for loop in row.loops for s in loop.after]
    copies = [Copy(r, u) for r in range(row.rows) for u in range(row.shape.unroll)]
    out.extend(prefetches(row.choices.get("prefetch", 0), stages, copies, row.values, Frame(), row.rows))
