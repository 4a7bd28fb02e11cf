"""Statements of loop bodies: reductions fed, scans advanced, results stored, for every copy (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synthesizer_svc.schedule.emit.along import OUTER
from synthesizer_svc.schedule.emit.cpp import reduce as rd
from synthesizer_svc.schedule.emit.cpp.shape import Shape
from synthesizer_svc.schedule.emit.cpp.types import SCALAR
from synthesizer_svc.schedule.emit.cpp.values import Copy, Frame, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Index
from synthesizer_svc.schedule.ir import Stage, Write
from synthesizer_svc.schedule.schedule import Value


@dataclass
class Body:
    """Writes the statements of stages into frames."""

    shape: Shape
    values: Values
    choices: Mapping[str, Value]
    streamed: frozenset[str] = frozenset()
    """Buffers written around the caches."""

    def accumulator(self, stage: Stage, copy: Copy) -> str:
        slot = copy.unit if self.shape.mode == OUTER else copy.unit % self.shape.accumulators
        return f"{stage.name}_acc{copy.row}_{slot}"

    def run(self, stages: tuple[Stage, ...], copies: list[Copy], frame: Frame) -> None:
        """One iteration of the stages of a pass, for all copies."""
        for stage in stages:
            for copy in copies:
                if stage.kind == "reduce":
                    self._feed(stage, copy, frame)
                elif stage.kind == "scan":
                    self._advance(stage, copy, frame)
                else:
                    self.write(stage.exprs[0], stage.writes[0], copy, frame)

    def _feed(self, stage: Stage, copy: Copy, frame: Frame) -> None:
        x = self.values.vector(stage.exprs[0], copy, frame)
        position = ""
        if rd.is_arg(stage):
            position = self.values.vector(stage.exprs[1], copy, frame)
        part = copy.part if self.shape.mode != OUTER and isinstance(copy.part, int) else None
        frame.lines.add(rd.step(stage, self.accumulator(stage, copy), x, position, part, self.shape.lanes))

    def _advance(self, stage: Stage, copy: Copy, frame: Frame) -> None:
        lanes, dtype = self.shape.lanes, stage.exprs[0].dtype
        x, name = self.values.vector(stage.exprs[0], copy, frame), self.values.fresh("s")
        product = stage.op == "cumprod"
        kind = lanes.vector(dtype)
        if self.shape.mode == OUTER:
            carry = f"{stage.name}_carry{copy.row}_{copy.unit}"
            wide = rd.carry_type(stage, lanes, along_lanes=False, serial=False)
            frame.lines.add(f"{carry} {'*' if product else '+'}= ke_cast<{wide}>({x});")
            frame.lines.add(f"const {kind} {name} = ke_cast<{kind}>({carry});")
        else:
            carry = f"{stage.name}_carry{copy.row}"
            frame.lines.add(f"const {kind} {name} = ke_scan_step<{'true' if product else 'false'}>({x}, {carry});")
        self.values.scans[stage.name, copy.row, copy.unit] = name
        write = stage.writes[0]
        if write is not None:
            self._store(name, write, copy, frame)

    def write(self, expr: Expr, write: Write | None, copy: Copy, frame: Frame) -> None:
        """Store the vector ``expr``."""
        if write is None:
            return
        self._store(self.values.vector(expr, copy, frame), write, copy, frame)

    def _store(self, vector: str, write: Write, copy: Copy, frame: Frame) -> None:
        values = self.values
        step = write.offset.coefficient(values.vec) if values.vec is not None else None
        place = f"{write.buffer} + {values.index_text(write.offset, copy, frame)}"
        part = "" if copy.part is None else f", {copy.part}"
        if step == 1 and write.buffer in self.streamed and copy.part is None:
            frame.lines.add(f"ke_stream({place}, {vector});")
        elif step == 1:
            frame.lines.add(f"ke_write({place}, {vector}{part});")
        elif step is not None:
            frame.lines.add(f"ke_write_strided({place}, {step}, {vector}{part});")
        else:
            self._scatter(vector, write, copy, frame)

    def _scatter(self, vector: str, write: Write, copy: Copy, frame: Frame) -> None:
        """Positions that are not affine along the lanes, one lane at a time."""
        lane, count = self.values.fresh("l"), self.shape.lanes.count if copy.part is None else copy.part
        inside = Frame(parent=frame, barrier=True)
        where = self.values.index_text(write.offset, Copy(copy.row, copy.unit, copy.part, lane), inside)
        frame.lines.add(
            f"for (int {lane} = 0; {lane} < {count}; ++{lane}) ke_put({write.buffer} + {where}, {vector}[{lane}]);"
        )

    # ------------------------------------------------------------------ results of a row

    def result(self, stage: Stage, component: int, text: str, copy: Copy, frame: Frame) -> None:
        """Name a row's result and store it where it leaves the group."""
        name = f"{stage.name}_{component}" if len(stage.writes) > 1 or stage.op == "softstats" else f"{stage.name}_v"
        self.values.rows[stage.name, component] = name
        write = stage.writes[component] if component < len(stage.writes) else None
        if self.shape.mode == OUTER:
            full = f"{name}_{copy.row}_{copy.unit}"
            frame.lines.add(f"const auto {full} = {text};")
            if write is not None:
                self._store(full, write, copy, frame)
            return
        full = f"{name}_{copy.row}"
        frame.lines.add(f"const {SCALAR[stage.dtype]} {full} = {text};")
        if write is not None:
            self._put(full, write.buffer, write.offset, copy, frame)

    def _put(self, name: str, buffer: str, offset: Index, copy: Copy, frame: Frame) -> None:
        frame.lines.add(f"ke_put({buffer} + {self.values.index_text(offset, copy, frame)}, {name});")

    def value(self, stage: Stage, copy: Copy, frame: Frame) -> None:
        """A value computed once per row."""
        expr = stage.exprs[0]
        if self.shape.mode == OUTER:
            text = self.values.vector(expr, copy, frame)
        else:
            text = self.values.value(expr, copy, frame)
        self.result(stage, 0, text, copy, frame)
