"""Sides of tiles and the factors that lie on them (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.triton.positions import placed
from synthesizer_svc.schedule.emit.triton.types import TL
from synthesizer_svc.schedule.emit.triton.values import Frame, Values
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.lazy import Buffer

ROW, COLUMN = "[:, None]", "[None, :]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """``size`` positions along flattened ``axes``; ``<name>_at`` are their numbers, ``<name>_ok`` says which exist."""

    name: str
    axes: tuple[Axis, ...]
    size: int
    ragged: bool

    @classmethod
    def whole(cls, name: str, axes: tuple[Axis, ...], size: int) -> Span:
        """A span over all of ``axes`` at once."""
        return cls(name=name, axes=axes, size=size, ragged=prod(a.extent for a in axes) != size)

    def lines(self, start: str = "") -> list[str]:
        """Definitions of the numbers and the mask, beginning at ``start``."""
        first = f"{start} + " if start else ""
        found = [f"{self.name}_at = {first}tl.arange(0, {self.size})"]
        if self.ragged:
            found.append(f"{self.name}_ok = {self.name}_at < {prod(a.extent for a in self.axes)}")
        return found

    def place(self, values: Values, frame: Frame, spread: str, *, wide: bool = False) -> None:
        """Positions of the axes, along rows or columns of a tile."""
        flat = f"{values.prefix}{self.name}"
        frame.lines.add(f"{flat} = {self.name}_at{spread}{'.to(tl.int64)' if wide else ''}")
        placed(values, frame, self.axes, flat, self.name)
        if self.ragged:
            frame.lines.add(f"{flat}_ok = {self.name}_ok{spread}")
            values.masks[self.name] = f"{flat}_ok"


def factor(
    values: Values,
    frame: Frame,
    expr: Expr,
    dtype: DType,
    buffers: Mapping[str, Buffer],
    summed: tuple[Span, ...],
    name: str,
) -> None:
    """Define ``name`` as the tile of ``expr`` in ``dtype``; zero where one of ``summed`` has no position."""
    direct = directly(expr)
    if direct is not None and buffers[direct.attr[0]].dtype is dtype:
        guards = (values.guard(expr, frame),) if expr.op == "guard" else ()
        frame.lines.add(f"{name} = {values.loaded(direct, frame, guards, raw=True)}")
        return
    text = values.value(expr, frame)
    masks = [values.masks[span.name] for span in summed if span.ragged]
    if masks:
        text = f"tl.where({' & '.join(masks)}, {text}, 0.0)"
    frame.lines.add(f"{name} = ({text}).to({TL[dtype]})")


def directly(expr: Expr) -> Expr | None:
    """The load that ``expr`` is, with zero where it is guarded."""
    if expr.op == "load":
        return expr
    if expr.op == "guard" and expr.args[0].op == "load" and expr.args[1].op == "const" and expr.args[1].attr == 0:
        return expr.args[0]
    return None
