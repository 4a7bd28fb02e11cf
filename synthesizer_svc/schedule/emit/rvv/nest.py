"""Loop nests of a row group: the passes over a row, written for a block of rows (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.bind import row_major
from synthesizer_svc.schedule.emit.along import INNER, OUTER
from synthesizer_svc.schedule.emit.rvv import reduce as rd
from synthesizer_svc.schedule.emit.rvv.body import Body
from synthesizer_svc.schedule.emit.rvv.shape import Shape
from synthesizer_svc.schedule.emit.rvv.strips import WHOLE, Strips, strips, whole
from synthesizer_svc.schedule.emit.rvv.values import Copy, Frame, Staged, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Stage
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.stages import Pass

SUM_STEPS, PRODUCT_STEPS = 64, 512
"""Additions in a row after which a sum (of products: a contraction's) is flushed into a second accumulator: bounds the
growth of its error. Library kernels add products of a contraction in parts of that size, too."""


@dataclass
class Row:
    """Emits everything that happens for one block of ``rows`` rows."""

    shape: Shape
    loops: tuple[Pass, ...]
    choices: Mapping[str, Value]
    root: Frame
    used: set[tuple[str, int]]
    kept: tuple[Expr, ...] = ()
    rows: int = 1
    values: Values = field(init=False)
    body: Body = field(init=False)

    def __post_init__(self) -> None:
        self.values = Values(
            group=self.shape.group,
            vec=self.shape.vec,
            block=self.shape.block,
            vector_rows=self.shape.mode == OUTER,
            used=self.used,
            uses=_uses(self.loops),
            needed=frozenset(e.attr for e in ex.walk(*_roots(self.loops)) if e.op == "row"),
        )
        self.body = Body(shape=self.shape, values=self.values)

    def emit(self, bound: frozenset[Axis], rows: int, lengths: tuple[str, ...]) -> Frame:
        """A frame with the passes of ``rows`` rows; ``lengths`` are those of the strips along an outer axis."""
        self.rows = rows
        frame = Frame(parent=self.root, bound=bound, holds_rows=True)
        copies = [Copy(r, u, vl) for r in range(rows) for u, vl in enumerate(lengths or ("",))]
        self.values.staged, self.values.computed = {}, set()
        self._declare_staged(frame)
        for loop in self.loops:
            if loop.stages:
                frame.lines.add(f"// {_described(loop)}")
                (self._along_row if self.shape.mode == INNER else self._across_rows)(loop, copies, frame)
            for stage in loop.after:
                for copy in copies:
                    self.body.value(stage, copy, frame)
            self.values.computed |= {e for e in self.kept if _computes(loop, e)}
        return frame

    def _declare_staged(self, frame: Frame) -> None:
        for number, expr in enumerate(self.kept):
            inner = next(loop.inner for loop in self.loops if _computes(loop, expr))
            size = prod(axis.extent for axis in inner)
            frame.lines.add(f"float stage{number}[{size * self.rows}] __attribute__((aligned(64)));")
            self.values.staged[expr] = Staged(buffer=f"stage{number}", offset=row_major(inner), row_step=size)

    def _accumulators(self, stage: Stage, row: int) -> list[str]:
        slots = 1 if stage.op == "softstats" else self.shape.accumulators
        return [self.body.accumulator(stage, Copy(row, slot)) for slot in range(slots)]

    def _declare(self, stage: Stage, name: str, vl: str, frame: Frame) -> None:
        group = self.shape.group
        spread = f"__riscv_vfmv_v_f_f32{group.name}"
        if stage.op == "softstats":
            frame.lines.add(f"{group.floats} {name}_top = {spread}(-__builtin_inff(), {vl});")
            frame.lines.add(f"{group.floats} {name} = {spread}(0.0f, {vl});")
        else:
            frame.lines.add(f"{group.floats} {name} = {spread}({rd.identity(stage)}, {vl});")

    def _flush(self, stage: Stage, name: str, total: str, vl: str, out: Frame) -> None:
        out.lines.add(rd.step("sum", total, name, vl, undisturbed=False))
        out.lines.add(f"{name} = __riscv_vfmv_v_f_f32{self.shape.group.name}({rd.identity(stage)}, {vl});")

    # ------------------------------------------------------------------ lanes along the row

    def _along_row(self, loop: Pass, copies: list[Copy], frame: Frame) -> None:
        if not loop.inner:
            self._single(loop, copies, frame)
            return
        vec, around = loop.inner[-1], loop.inner[:-1]
        self.values.vec = vec
        strip = strips(vec, self.shape, self.root)
        reduces = any(s.kind == "reduce" for s in loop.stages)
        full = whole(self.shape, self.root) if reduces else ""
        turns = -(-vec.extent // (strip.elements * len(strip.lengths)))
        turns_all = turns * prod(a.extent for a in around)
        long = {s: limit for s in loop.stages if turns_all > (limit := _steps(s))}
        for stage in loop.stages:
            for row in range(self.rows if stage.kind == "reduce" else 0):
                for name in self._accumulators(stage, row):
                    self._declare(stage, name, full, frame)
                if stage in long:
                    self._declare(stage, f"{stage.name}_total{row}", full, frame)
        inside = Frame(parent=frame, bound=frozenset(loop.inner))
        mine = [Copy(r, u, vl) for r in range(self.rows) for u, vl in enumerate(strip.lengths)]
        self.body.run(loop.stages, mine, inside, undisturbed=strip.lengths[0] != WHOLE)
        nest = self._strip_nest(strip, inside, long, turns, full)
        for axis in reversed(around):
            nest = _looped(nest, axis)
        frame.lines.extend(nest.lines.lines)
        for stage in loop.stages:
            for row in range(self.rows if stage.kind == "reduce" else 0):
                self._fold(stage, row, full, frame, has_total=stage in long)
        self.values.vec = self.shape.vec

    def _single(self, loop: Pass, copies: list[Copy], frame: Frame) -> None:
        """Rows of one element, which is what every reduction of it results in."""
        for stage in loop.stages:
            for copy in copies:
                self.body.result(stage, 0, self.values.value(stage.exprs[0], copy, frame), copy, frame)

    def _strip_nest(self, strip: Strips, inside: Frame, long: dict[Stage, int], turns: int, full: str) -> Frame:
        """The loop over strips; long sums are flushed after so many turns."""
        out = Frame(parent=inside.parent)
        most = min(long.values(), default=turns)
        if turns <= most:
            strip.loop(out.lines, lambda: inside.lines.lines)
            self._flush_rows(long, full, out)
            return out
        extent, size = strip.axis.extent, most * strip.elements * len(strip.lengths)
        with out.lines.block(f"for (int64_t chunk = 0; chunk < {extent}; chunk += {size})"):
            out.lines.add(f"const int64_t chunk_end = chunk + {size} < {extent} ? chunk + {size} : {extent};")
            strip.loop(out.lines, lambda: inside.lines.lines, "chunk", "chunk_end")
            self._flush_rows(long, full, out)
        return out

    def _flush_rows(self, long: dict[Stage, int], vl: str, out: Frame) -> None:
        for stage in long:
            for row in range(self.rows):
                for name in self._accumulators(stage, row):
                    self._flush(stage, name, f"{stage.name}_total{row}", vl, out)

    def _fold(self, stage: Stage, row: int, vl: str, frame: Frame, *, has_total: bool) -> None:
        """Accumulators over their lanes: the result of a row."""
        names, group = self._accumulators(stage, row), self.shape.group
        if stage.op == "softstats":
            self.used.update({("fold_max_raw", group.lmul), ("online_fold", group.lmul)})
            name = names[0]
            self.body.result(stage, 0, f"ke_fold_max_raw_{group.name}({name}_top, {vl})", Copy(row), frame)
            greatest = f"{self.values.rows[stage.name, 0]}_{row}"
            text = f"ke_online_fold_{group.name}({name}_top, {name}, {greatest}, {vl})"
            self.body.result(stage, 1, text, Copy(row), frame)
            return
        # What a flush has left in an accumulator is in the total, which the first accumulator then is.
        names = [f"{stage.name}_total{row}"] if has_total else names
        frame.lines.extend(rd.merged(stage.op, names, vl))
        self.used.add((f"fold_{stage.op}", group.lmul))
        self.body.result(stage, 0, f"ke_fold_{stage.op}_{group.name}({names[0]}, {vl})", Copy(row), frame)

    # ------------------------------------------------------------------ lanes across rows

    def _across_rows(self, loop: Pass, copies: list[Copy], frame: Frame) -> None:
        reduced = [s for s in loop.stages if s.kind == "reduce"]
        steps = prod(a.extent for a in loop.inner)
        long = {s: limit for s in reduced if steps > (limit := _steps(s))}
        for stage in reduced:
            for copy in copies:
                self._declare(stage, self.body.accumulator(stage, copy), copy.vl, frame)
                if stage in long:
                    self._declare(stage, _total(stage, copy), copy.vl, frame)
        inside = Frame(parent=frame, bound=frozenset(loop.inner))
        self.body.run(loop.stages, copies, inside)
        if not loop.inner:
            frame.lines.extend(inside.lines.lines)
            self._results(reduced, long, copies, frame)
            return
        unroll = int(self.choices.get("inner_unroll", 1))
        last, around = loop.inner[-1], loop.inner[:-1]
        most = min(long.values(), default=last.extent)
        if last.extent > most:
            nest = Frame(parent=frame)
            with nest.lines.block(f"for (int64_t chunk = 0; chunk < {last.extent}; chunk += {most})"):
                end = f"chunk + {most}"
                nest.lines.add(f"const int64_t chunk_end = {end} < {last.extent} ? {end} : {last.extent};")
                nest.lines.add(_unrolled(unroll))
                with nest.lines.block(f"for (int64_t {last.name} = chunk; {last.name} < chunk_end; ++{last.name})"):
                    nest.lines.extend(inside.lines.lines)
                self._flush_copies(long, copies, nest)
        else:
            nest = _looped(inside, last, unroll)
            self._flush_copies(long, copies, nest)
        for axis in reversed(around):
            nest = _looped(nest, axis)
        frame.lines.extend(nest.lines.lines)
        self._results(reduced, long, copies, frame)

    def _results(self, reduced: list[Stage], long: dict[Stage, int], copies: list[Copy], frame: Frame) -> None:
        for stage in reduced:
            for copy in copies:
                text = _total(stage, copy) if stage in long else self.body.accumulator(stage, copy)
                self.body.result(stage, 0, text, copy, frame)

    def _flush_copies(self, long: dict[Stage, int], copies: list[Copy], out: Frame) -> None:
        for stage in long:
            for copy in copies:
                self._flush(stage, self.body.accumulator(stage, copy), _total(stage, copy), copy.vl, out)


def _total(stage: Stage, copy: Copy) -> str:
    return f"{stage.name}_total{copy.row}_{copy.unit}"


def _steps(stage: Stage) -> int:
    """Additions that one accumulator may take; no end for what is no sum."""
    if stage.kind != "reduce" or stage.op != "sum":
        return 1 << 62
    return PRODUCT_STEPS if stage.contraction else SUM_STEPS


def _uses(loops: tuple[Pass, ...]) -> Counter[Expr]:
    """How many distinct expressions, or stages, have an expression as operand."""
    roots = _roots(loops)
    return Counter([a for e in ex.walk(*roots) for a in e.args] + roots)


def _roots(loops: tuple[Pass, ...]) -> list[Expr]:
    stages = dict.fromkeys(s for loop in loops for s in (*loop.stages, *loop.after))
    return [e for s in stages for e in s.exprs]


def _computes(loop: Pass, expr: Expr) -> bool:
    return expr in set(ex.walk(*(e for s in loop.stages for e in s.exprs)))


def _looped(body: Frame, axis: Axis, unroll: int = 0) -> Frame:
    out = Frame(parent=body.parent)
    if unroll:
        out.lines.add(_unrolled(unroll))
    with out.lines.block(f"for (int64_t {axis.name} = 0; {axis.name} < {axis.extent}; ++{axis.name})"):
        out.lines.extend(body.lines.lines)
    return out


def _unrolled(times: int) -> str:
    return f"#pragma clang loop unroll_count({times})" if times > 1 else "#pragma clang loop unroll(disable)"


def _described(loop: Pass) -> str:
    return f"{', '.join(s.op for s in loop.stages)} over {' x '.join(str(a.extent) for a in loop.inner)}"
