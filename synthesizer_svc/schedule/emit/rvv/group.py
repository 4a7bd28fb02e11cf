"""One row group as one C function (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from synthesizer_svc.schedule.emit.along import INNER, OUTER
from synthesizer_svc.schedule.emit.rvv.nest import Row
from synthesizer_svc.schedule.emit.rvv.shape import Shape, shape_of
from synthesizer_svc.schedule.emit.rvv.strips import strips
from synthesizer_svc.schedule.emit.rvv.supported import check, memory_type
from synthesizer_svc.schedule.emit.rvv.text import Lines
from synthesizer_svc.schedule.emit.rvv.truths import without_truths
from synthesizer_svc.schedule.emit.rvv.values import Frame
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.stages import Pass, expanded, passes, staging_candidates

STACK_BYTES_MAX = 1 << 18
"""Row buffers live on the stack."""


def buffers_of(plan: Plan, group: Group) -> tuple[list[Buffer], list[Buffer]]:
    """Buffers a group reads and writes, in order of first use."""
    reads = dict.fromkeys(load.attr[0] for load in group.loads())
    writes = dict.fromkeys(w.buffer for s in group.stages for w in s.writes if w is not None)
    return [plan.buffer(b) for b in reads], [plan.buffer(b) for b in writes]


def emit_group(plan: Plan, group: Group, choices: Mapping[str, Value], vlen: int, used: set[tuple[str, int]]) -> str:
    """The function of ``group`` under ``choices``; it takes the group's buffers as pointers.

    Raises:
        Unsupported: something in it has no form here.
    """
    stages = without_truths(expanded(group, choices))
    check(plan, group, stages)
    shape, loops, root = shape_of(group, choices, vlen), passes(stages), Frame()
    kept = _kept(loops, shape, choices)
    row = Row(shape=shape, loops=loops, choices=choices, root=root, used=used, kept=kept)
    nest = Lines()
    _rows(nest, group, shape, row)
    reads, writes = buffers_of(plan, group)
    parameters = [f"const {memory_type(b)} *restrict {b.name}" for b in reads]
    parameters += [f"{memory_type(b)} *restrict {b.name}" for b in writes]
    out = Lines()
    chosen = ", ".join(f"{k}={v}" for k, v in sorted(choices.items()))
    out.add(f"// {group.name}: {group.kind}, {group.rows} rows; lanes {shape.mode}; {chosen}")
    with out.block(f"static void {group.name}({', '.join(parameters)})"):
        out.extend(root.lines.lines)
        out.extend(nest.lines)
    return out.text()


def _kept(loops: tuple[Pass, ...], shape: Shape, choices: Mapping[str, Value]) -> tuple[Expr, ...]:
    """Values kept in row buffers, where they fit on the stack."""
    if choices.get("staging") != "buffer" or shape.mode != INNER:
        return ()
    found = staging_candidates(loops)
    longest = max((prod(a.extent for a in loop.inner) for loop in loops if loop.inner), default=1)
    return found if 4 * longest * len(found) * shape.rows <= STACK_BYTES_MAX else ()


def _rows(out: Lines, group: Group, shape: Shape, row: Row) -> None:
    """Loops over rows: single rows outside, then blocks of rows, then strips along an outer axis."""
    bound = frozenset(group.outer)

    def passes_of(rows: int) -> list[str]:
        inside = Lines()
        if shape.mode == OUTER and shape.vec is not None:
            strip = strips(shape.vec, shape, row.root)
            strip.loop(inside, lambda: row.emit(bound, rows, strip.lengths).lines.lines)
        else:
            inside.extend(row.emit(bound, rows, ()).lines.lines)
        return inside.lines

    def blocks() -> list[str]:
        inside, block = Lines(), shape.block
        if block is None:
            return passes_of(1)
        whole = block.extent // shape.rows * shape.rows
        with inside.block(f"for (int64_t {block.name} = 0; {block.name} < {whole}; {block.name} += {shape.rows})"):
            inside.extend(passes_of(shape.rows))
        if whole < block.extent:
            with inside.block(""):
                inside.add(f"const int64_t {block.name} = {whole};  // the last {block.extent - whole}")
                inside.extend(passes_of(block.extent - whole))
        return inside.lines

    lines = blocks()
    for axis in reversed(shape.others):
        around = Lines()
        with around.block(f"for (int64_t {axis.name} = 0; {axis.name} < {axis.extent}; ++{axis.name})"):
            around.extend(lines)
        lines = around.lines
    out.extend(lines)
