"""Loop nests of a row group: the passes over a row, and the loops over rows around them (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.bind import row_major
from synthesizer_svc.schedule.emit.along import INNER, OUTER
from synthesizer_svc.schedule.emit.cpp import reduce as rd
from synthesizer_svc.schedule.emit.cpp.body import Body
from synthesizer_svc.schedule.emit.cpp.loops import describe, looped, tail_units
from synthesizer_svc.schedule.emit.cpp.online import emit_online
from synthesizer_svc.schedule.emit.cpp.prefetch import of_next_row, prefetches
from synthesizer_svc.schedule.emit.cpp.shape import Shape
from synthesizer_svc.schedule.emit.cpp.types import SCALAR
from synthesizer_svc.schedule.emit.cpp.values import Copy, Frame, Staged, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Stage
from synthesizer_svc.schedule.schedule import Value
from synthesizer_svc.schedule.stages import Pass

CASCADE_STEPS = 64
"""Additions in a row after which a float sum is flushed into a second accumulator: bounds the error's growth."""
CHUNK_STEPS = 16


@dataclass
class Row:
    """Emits everything that happens for one block of rows: ``rows`` of them, ``units`` vectors along an outer axis."""

    shape: Shape
    loops: tuple[Pass, ...]
    choices: Mapping[str, Value]
    root: Frame
    streamed: frozenset[str]
    kept: tuple[Expr, ...] = ()
    values: Values = field(init=False)
    body: Body = field(init=False)
    rows: int = 1

    def __post_init__(self) -> None:
        self.values = Values(
            lanes=self.shape.lanes, vec=self.shape.vec, block=self.shape.block, vector_rows=self.shape.mode == OUTER
        )
        self.body = Body(shape=self.shape, values=self.values, choices=self.choices, streamed=self.streamed)

    def emit(self, bound: frozenset[Axis], rows: int, units: list[tuple[int, int | None]]) -> Frame:
        """A frame with the passes of ``rows`` rows; ``units`` are (vector, valid lanes) along an outer vector axis."""
        self.rows = rows
        frame = Frame(parent=self.root, bound=bound, holds_rows=True)
        copies = [Copy(r, u, part) for r in range(rows) for u, part in units]
        self.values.staged, self.values.computed = {}, set()
        self._declare_staged(frame, len(units))
        for number, loop in enumerate(self.loops):
            if loop.stages:
                frame.lines.add(f"// pass {number}: {describe(loop)}")
            self._pass(loop, copies, frame)
            for stage in loop.after:
                for copy in copies:
                    self.body.value(stage, copy, frame)
            self.values.computed |= {e for e in self.kept if self._computes(loop, e)}
        return frame

    def _computes(self, loop: Pass, expr: Expr) -> bool:
        return expr in set(ex.walk(*(e for s in loop.stages for e in s.exprs)))

    def _declare_staged(self, frame: Frame, units: int) -> None:
        for number, expr in enumerate(self.kept):
            inner = next(loop.inner for loop in self.loops if self._computes(loop, expr))
            size, lanes = 1, self.shape.lanes.count
            for axis in inner:
                size *= axis.extent
            name, outer = f"stage{number}", self.shape.mode == OUTER
            step = self.rows * units * lanes if outer else 1
            total = size * self.rows * (units * lanes if outer else 1)
            frame.lines.add(f"alignas(64) {SCALAR[expr.dtype]} {name}[{total + lanes}];")
            self.values.staged[expr] = Staged(
                buffer=name,
                offset=row_major(inner) * step,
                row_step=units * lanes if outer else size,
                unit_step=lanes,
            )

    # ------------------------------------------------------------------ one pass

    def _pass(self, loop: Pass, copies: list[Copy], frame: Frame) -> None:
        online = [s for s in loop.stages if s.op == "softstats"]
        rest = tuple(s for s in loop.stages if s.op != "softstats")
        for stage in online:
            emit_online(self, stage, frame)
        if not rest:
            return
        if self.shape.mode == INNER:
            self._along_row(rest, loop.inner, copies, frame)
        else:
            self._across_rows(rest, loop.inner, copies, frame)

    def _declare(self, stages: tuple[Stage, ...], copies: list[Copy], frame: Frame, *, slots: bool) -> None:
        for stage in stages:
            names: dict[str, None] = {}
            for copy in copies:
                if stage.kind == "reduce":
                    for unit in range(self.shape.accumulators) if slots else (copy.unit,):
                        names[self.body.accumulator(stage, Copy(copy.row, unit))] = None
                elif stage.kind == "scan":
                    self._declare_carry(stage, copy, frame)
            for name in names:
                frame.lines.extend(rd.declare(stage, name, self.shape.lanes))

    def _declare_carry(self, stage: Stage, copy: Copy, frame: Frame) -> None:
        outer = self.shape.mode == OUTER
        kind = rd.carry_type(
            stage, self.shape.lanes, along_lanes=not outer, serial=self.choices.get("prefix") == "serial"
        )
        name = f"{stage.name}_carry{copy.row}" + (f"_{copy.unit}" if outer else "")
        start = "1" if stage.op == "cumprod" else "0"
        value = f"ke_splat<{kind}>({start})" if kind.startswith("v") else start
        frame.lines.add(f"{kind} {name} = {value};")

    def _body(self, stages: tuple[Stage, ...], copies: list[Copy], parent: Frame, bound: tuple[Axis, ...]) -> Frame:
        frame = Frame(parent=parent, bound=frozenset(bound))
        self.body.run(stages, copies, frame)
        return frame

    # ------------------------------------------------------------------ lanes along the row

    def _along_row(self, stages: tuple[Stage, ...], inner: tuple[Axis, ...], copies: list[Copy], frame: Frame) -> None:
        self.set_lane_axis(inner[-1] if inner else None)
        self._declare(stages, copies, frame, slots=True)
        vec, around = inner[-1], inner[:-1]
        steps = vec.extent // (self.shape.lanes.count * self.shape.accumulators)
        total_steps = steps
        for axis in around:
            total_steps *= axis.extent
        cascaded = tuple(s for s in stages if self._is_long_sum(s, total_steps))
        for stage in cascaded:
            for row in range(self.rows):
                frame.lines.extend(rd.declare(stage, f"{stage.name}_total{row}", self.shape.lanes))
        inside = Frame(parent=frame, bound=frozenset(inner))
        chunked = bool(cascaded) and steps > CASCADE_STEPS
        self._lane_loop(stages, vec, inside, cascaded if chunked else ())
        if cascaded and not chunked:
            self._flush(cascaded, inside)
        for axis in reversed(around):
            inside = looped(inside, axis, frame)
        frame.lines.extend(inside.lines.lines)
        self._finish(stages, cascaded, frame)
        self.set_lane_axis(self.shape.vec)

    def set_lane_axis(self, axis: Axis | None) -> None:
        if self.values.vec != axis:
            self.values.vec = axis
            self.values._facts.clear()  # noqa: SLF001  what varies along lanes depends on the axis

    def _is_long_sum(self, stage: Stage, steps: int) -> bool:
        floating = stage.exprs[0].dtype.floating
        return (
            stage.kind == "reduce"
            and stage.op == "sum"
            and floating
            and not stage.contraction
            and steps > CASCADE_STEPS
        )

    def _lane_loop(self, stages: tuple[Stage, ...], vec: Axis, frame: Frame, chunked: tuple[Stage, ...]) -> None:
        """Whole vectors in a loop, the rest straight after it."""
        lanes, unroll = self.shape.lanes.count, self.shape.unroll
        unroll = max(1, min(unroll, vec.extent // lanes))
        step = lanes * unroll
        main = vec.extent // step * step
        if main:
            whole = [Copy(r, u) for r in range(self.rows) for u in range(unroll)]
            body = self._body(stages, whole, frame, (vec,))
            self._prefetch(stages, whole, body)
            if chunked:
                size = step * max(1, CHUNK_STEPS * self.shape.accumulators // unroll)
                with frame.lines.block(f"for (int64_t chunk = 0; chunk < {main}; chunk += {size})"):
                    frame.lines.add(f"const int64_t chunk_end = chunk + {size} < {main} ? chunk + {size} : {main};")
                    with frame.lines.block(
                        f"for (int64_t {vec.name} = chunk; {vec.name} < chunk_end; {vec.name} += {step})"
                    ):
                        frame.lines.extend(body.lines.lines)
                    self._flush(chunked, frame)
            else:
                with frame.lines.block(f"for (int64_t {vec.name} = 0; {vec.name} < {main}; {vec.name} += {step})"):
                    frame.lines.extend(body.lines.lines)
        units = tail_units(vec.extent - main, lanes)
        if units:
            rest = [Copy(r, u, part) for r in range(self.rows) for u, part in units]
            body = self._body(stages, rest, frame, (vec,))
            with frame.lines.block("", "}"):
                frame.lines.add(
                    f"constexpr int64_t {vec.name} = {main};  // the last {vec.extent - main} of {vec.extent}"
                )
                frame.lines.extend(body.lines.lines)

    def _prefetch(self, stages: tuple[Stage, ...], copies: list[Copy], body: Frame) -> None:
        """Bytes ahead in every pass, the next row in the last one: by then the row's own lines are all here."""
        choice = self.choices.get("prefetch", 0)
        if of_next_row(choice):
            last = next(loop for loop in reversed(self.loops) if loop.stages)
            if not set(stages) & set(last.stages):
                return
            stages = tuple(s for loop in self.loops if loop.inner == last.inner for s in loop.stages)
        body.lines.lines[:0] = prefetches(choice, stages, copies, self.values, body, self.rows)

    def _flush(self, stages: tuple[Stage, ...], frame: Frame) -> None:
        for stage in stages:
            for row in range(self.rows):
                names = [self.body.accumulator(stage, Copy(row, a)) for a in range(self.shape.accumulators)]
                zero = rd.identity(stage)
                kind = self.shape.lanes.vector(stage.exprs[0].dtype)
                lines, _ = rd.fold(stage, names)
                frame.lines.extend(lines)
                frame.lines.add(f"{stage.name}_total{row} += {names[0]};")
                for name in names:
                    frame.lines.add(f"{name} = ke_splat<{kind}>({zero});")

    def _finish(self, stages: tuple[Stage, ...], cascaded: tuple[Stage, ...], frame: Frame) -> None:
        """Fold accumulators over their lanes: results of the rows."""
        for stage in stages:
            if stage.kind != "reduce":
                continue
            for row in range(self.rows):
                names = [self.body.accumulator(stage, Copy(row, a)) for a in range(self.shape.accumulators)]
                names += [f"{stage.name}_total{row}"] if stage in cascaded else []
                lines, text = rd.fold(stage, names)
                frame.lines.extend(lines)
                self.body.result(stage, 0, text, Copy(row), frame)

    # ------------------------------------------------------------------ lanes across rows

    def _across_rows(
        self, stages: tuple[Stage, ...], inner: tuple[Axis, ...], copies: list[Copy], frame: Frame
    ) -> None:
        self._declare(stages, copies, frame, slots=False)
        total = 1
        for axis in inner:
            total *= axis.extent
        cascaded = tuple(s for s in stages if self._is_long_sum(s, total))
        for stage in cascaded:
            for copy in copies:
                frame.lines.extend(rd.declare(stage, f"{stage.name}_total{copy.row}_{copy.unit}", self.shape.lanes))
        inside = Frame(parent=frame, bound=frozenset(inner))
        self.body.run(stages, copies, inside)
        for place, axis in enumerate(reversed(inner)):
            if place == 0 and cascaded and axis.extent > CASCADE_STEPS:
                inside = self._chunked(cascaded, copies, inside, axis, frame)
            else:
                inside = looped(
                    inside, axis, frame, unroll=int(self.choices.get("inner_unroll", 1)) if place == 0 else 1
                )
                if place == 0 and cascaded:
                    self._flush_rows(cascaded, copies, inside)
        frame.lines.extend(inside.lines.lines)
        for stage in stages:
            if stage.kind == "reduce":
                for copy in copies:
                    name = self.body.accumulator(stage, copy)
                    if stage in cascaded:
                        frame.lines.add(f"{name} += {stage.name}_total{copy.row}_{copy.unit};")
                    self.body.result(stage, 0, f"{name}_at" if rd.is_arg(stage) else name, copy, frame)

    def _chunked(self, stages: tuple[Stage, ...], copies: list[Copy], body: Frame, axis: Axis, parent: Frame) -> Frame:
        out = Frame(parent=parent, bound=body.bound)
        with out.lines.block(f"for (int64_t chunk = 0; chunk < {axis.extent}; chunk += {CHUNK_STEPS})"):
            end = f"chunk + {CHUNK_STEPS}"
            out.lines.add(f"const int64_t chunk_end = {end} < {axis.extent} ? {end} : {axis.extent};")
            with out.lines.block(f"for (int64_t {axis.name} = chunk; {axis.name} < chunk_end; ++{axis.name})"):
                out.lines.extend(body.lines.lines)
            self._flush_rows(stages, copies, out)
        return out

    def _flush_rows(self, stages: tuple[Stage, ...], copies: list[Copy], frame: Frame) -> None:
        for stage in stages:
            kind = self.shape.lanes.vector(stage.exprs[0].dtype)
            for copy in copies:
                name = self.body.accumulator(stage, copy)
                frame.lines.add(f"{stage.name}_total{copy.row}_{copy.unit} += {name};")
                frame.lines.add(f"{name} = ke_splat<{kind}>(0);")
