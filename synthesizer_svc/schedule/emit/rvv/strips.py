"""Strip-mined loops: each strip asks how many elements it gets, so no loop has a tail (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from synthesizer_svc.schedule.emit.rvv.shape import Shape
from synthesizer_svc.schedule.emit.rvv.text import Lines
from synthesizer_svc.schedule.emit.rvv.values import Frame
from synthesizer_svc.schedule.index import Axis

WHOLE = "vlmax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """A loop over ``axis``. ``lengths`` name the lengths of the strips of one turn in C, set anew in every turn
    where strips are ``partial``.
    """

    axis: Axis
    lengths: tuple[str, ...]
    partial: bool
    elements: int
    setter: str

    def loop(self, out: Lines, body: Callable[[], list[str]], first: str = "0", end: str = "") -> None:
        """The loop from ``first`` to ``end`` (C text; the whole axis when empty) around the lines of ``body``."""
        name, end = self.axis.name, end or str(self.axis.extent)
        step = f"{name} += {self._sum()}" if not self.partial else ""
        with out.block(f"for (int64_t {name} = {first}; {name} < {end}; {step})"):
            for unit, length in enumerate(self.lengths):
                place = f"{name}_{unit}" if unit else name
                if unit:
                    before = f"{name}_{unit - 1}" if unit > 1 else name
                    out.add(f"const int64_t {place} = {before} + {self.lengths[unit - 1]};")
                if self.partial:
                    out.add(f"const size_t {length} = {self.setter}({end} - {place});")
            out.extend(body())
            if self.partial:
                out.add(f"{name} += {self._sum()};")

    def _sum(self) -> str:
        return " + ".join(self.lengths) if self.partial else f"{len(self.lengths)} * {self.lengths[0]}"


def strips(axis: Axis, shape: Shape, root: Frame) -> Strips:
    """The loop over ``axis`` under ``shape``; a length that never changes is set in ``root``."""
    setter = f"__riscv_vsetvl_e32{shape.group.name}"
    units, partial = shape.units(axis.extent), not shape.sets_once(axis.extent)
    lengths = tuple(f"vl{unit}" for unit in range(units))
    if not partial:
        short = axis.extent < shape.elements
        length = define(root, f"vl_{axis.name}", f"{setter}({axis.extent})") if short else whole(shape, root)
        lengths = (length,) * units
    return Strips(axis=axis, lengths=lengths, partial=partial, elements=shape.elements, setter=setter)


def whole(shape: Shape, root: Frame) -> str:
    """The length of accumulators: of whole register groups, whatever the strips are."""
    return define(root, WHOLE, f"__riscv_vsetvlmax_e32{shape.group.name}()")


def define(root: Frame, name: str, text: str) -> str:
    """``name``, which is declared in ``root`` once."""
    if root.find(name) is None:
        root.lines.add(f"const size_t {name} = {text};")
        root.names[name] = name
    return name
