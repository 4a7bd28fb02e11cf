"""Statements of loop bodies: reductions fed, results named and stored, for every copy (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.along import OUTER
from synthesizer_svc.schedule.emit.rvv import reduce as rd
from synthesizer_svc.schedule.emit.rvv.shape import Shape
from synthesizer_svc.schedule.emit.rvv.values import SCALAR, Copy, Frame, Values
from synthesizer_svc.schedule.ir import Stage


@dataclass
class Body:
    """Writes the statements of stages into frames."""

    shape: Shape
    values: Values

    def accumulator(self, stage: Stage, copy: Copy) -> str:
        slots = 1 if stage.op == "softstats" else self.shape.accumulators
        slot = copy.unit if self.shape.mode == OUTER else copy.unit % slots
        return f"{stage.name}_acc{copy.row}_{slot}"

    def run(self, stages: tuple[Stage, ...], copies: list[Copy], frame: Frame, *, undisturbed: bool = False) -> None:
        """One iteration of the stages of a pass, for all copies."""
        for stage in stages:
            for copy in copies:
                if stage.kind == "reduce":
                    self._feed(stage, copy, frame, undisturbed=undisturbed)
                else:
                    write = stage.writes[0]
                    assert write is not None
                    text = self.values.vector(stage.exprs[0], copy, frame)
                    self.values.store(text, stage.exprs[0].dtype, write.buffer, write.offset, copy, frame)

    def _feed(self, stage: Stage, copy: Copy, frame: Frame, *, undisturbed: bool) -> None:
        x, into, values = stage.exprs[0], self.accumulator(stage, copy), self.values
        joined = stage.op == "sum" and x.op == "mul" and values.uses[x] == 1 and x not in values.staged
        if stage.op == "softstats":
            name = f"ke_online_{self.shape.group.name}"
            values.used.add(("online", self.shape.group.lmul))
            text = values.vector(x, copy, frame)
            frame.lines.add(f"{into} = {name}({text}, &{into}_top, {into}, {copy.vl});")
        elif joined and values.varies(x):
            scalar, vector = x.args if values.varies(x.args[1]) else x.args[::-1]
            texts = values.value(scalar, copy, frame), values.value(vector, copy, frame)
            frame.lines.add(rd.multiply_add(into, *texts, copy.vl, undisturbed=undisturbed))
        else:
            text = values.vector(x, copy, frame)
            frame.lines.add(rd.step(stage.op, into, text, copy.vl, undisturbed=undisturbed))

    def result(self, stage: Stage, component: int, text: str, copy: Copy, frame: Frame) -> None:
        """Name a row's result and store it where it leaves the group."""
        name = f"{stage.name}_{component}" if len(stage.writes) > 1 else f"{stage.name}_v"
        self.values.rows[stage.name, component] = name
        write, dtype = stage.writes[component], stage.dtype
        if write is None and (stage.name, component) not in self.values.needed:
            return
        if self.shape.mode == OUTER:
            full = f"{name}_{copy.row}_{copy.unit}"
            kind = self.shape.group.masks if dtype is DType.BOOL else self.shape.group.floats
            frame.lines.add(f"const {kind} {full} = {text};")
            if write is not None:
                self.values.store(full, dtype, write.buffer, write.offset, copy, frame)
            return
        full = f"{name}_{copy.row}"
        frame.lines.add(f"const {SCALAR[dtype]} {full} = {text};")
        if write is not None:
            frame.lines.add(f"{write.buffer}[{self.values.index_text(write.offset, copy, frame)}] = {full};")

    def value(self, stage: Stage, copy: Copy, frame: Frame) -> None:
        """A value computed once per row."""
        if stage.writes[0] is None and (stage.name, 0) not in self.values.needed:
            return
        pick = self.values.vector if self.shape.mode == OUTER else self.values.value
        self.result(stage, 0, pick(stage.exprs[0], copy, frame), copy, frame)
