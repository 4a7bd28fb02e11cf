"""Expressions to statements: one C++ constant per value and copy, placed in the outermost loop that allows it (pure).

A loop body is written for several *copies* at once: rows of a row block and unrolled vectors. A value that does not
depend on the row or on the vectorised axis is shared by the copies; a value that varies along the vectorised axis is a
vector, any other a scalar.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.cpp import ops
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.emit.cpp.types import SCALAR, Lanes
from synthesizer_svc.schedule.emit.scope import Scope
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index


@dataclass(frozen=True, slots=True)
class Copy:
    """Row ``row`` of the block, vector ``unit`` of the unrolled ones; ``part`` leading lanes (a number, or C++
    text where it is not known), or all when None.

    ``lane`` names a C++ variable when a single lane is computed by scalar code.
    """

    row: int = 0
    unit: int = 0
    part: int | str | None = None
    lane: str = ""


@dataclass
class Frame(Scope):
    """A C++ block. ``bound`` are the axes whose loops opened it; ``holds_rows``: results of rows are declared here.

    A ``barrier`` lets nothing be computed earlier: what is inside may not be evaluated at all.
    """

    bound: frozenset[Axis] = frozenset()
    barrier: bool = False
    holds_rows: bool = False
    lines: Lines = field(default_factory=Lines)

    def home(self, expr: Expr) -> Frame:
        """The outermost frame in which ``expr`` is defined."""
        frame = self
        if uses(expr, "scan"):
            return frame
        row = uses(expr, "row")
        while frame.parent is not None and not frame.barrier and not frame.bound & expr.axes.keys():
            if row and frame.holds_rows:
                break
            frame = frame.parent
        return frame


def uses(expr: Expr, op: str) -> bool:
    return any(e.op == op for e in ex.walk(expr))


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A value kept in a row buffer by the pass that computes it. ``offset`` within the buffer for copy (0, 0)."""

    buffer: str
    offset: Index
    row_step: int
    unit_step: int


@dataclass
class Values:
    """State of emitting one row body. ``vector_rows``: results of the row group are vectors (rows lie along lanes)."""

    lanes: Lanes
    vec: Axis | None
    block: Axis | None
    vector_rows: bool
    rows: dict[tuple[str, int], str] = field(default_factory=dict)
    scans: dict[tuple[str, int, int], str] = field(default_factory=dict)
    staged: dict[Expr, Staged] = field(default_factory=dict)
    computed: set[Expr] = field(default_factory=set)
    """Staged values that an earlier pass has written."""
    _count: int = 0
    _facts: dict[Expr, tuple[bool, bool]] = field(default_factory=dict)

    def fresh(self, prefix: str = "t") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def facts(self, expr: Expr) -> tuple[bool, bool]:
        """(varies along lanes, differs between rows of a block)."""
        if expr not in self._facts:
            found = ex.walk(expr)
            row = any(e.op == "row" for e in found)
            scan = any(e.op == "scan" for e in found)
            lanes = self.vec in expr.axes or scan or (row and self.vector_rows)
            self._facts[expr] = (lanes, self.block in expr.axes or row or scan)
        return self._facts[expr]

    def varies(self, expr: Expr, copy: Copy) -> bool:
        return self.facts(expr)[0] and not copy.lane

    def _key(self, expr: Expr, copy: Copy, kind: str) -> object:
        lanes, rows = self.facts(expr)
        unit = (copy.unit, copy.part, copy.lane) if lanes else ()
        return (kind, expr, copy.row if rows else 0, unit)

    # ------------------------------------------------------------------ values

    def vector(self, expr: Expr, copy: Copy, frame: Frame) -> str:
        """Name of a vector holding ``expr``; scalars are spread over the lanes."""
        if self.varies(expr, copy):
            return self.value(expr, copy, frame)
        key = self._key(expr, copy, "splat")
        found = frame.find(key)
        if found is None:
            home, kind = frame.home(expr), self.lanes.vector(expr.dtype)
            scalar = self.value(expr, copy, frame)
            found = self.fresh()
            make = f"ke_splat_mask<{kind}>" if expr.dtype is DType.BOOL else f"ke_splat<{kind}>"
            home.lines.add(f"const {kind} {found} = {make}({scalar});")
            home.names[key] = found
        return found

    def value(self, expr: Expr, copy: Copy, frame: Frame) -> str:
        """Name or literal of ``expr``: a vector where it varies along lanes, else a scalar."""
        if expr.op == "const":
            return ops.literal(expr.attr, expr.dtype)
        if expr.op == "row":
            return self._row(expr, copy)
        if expr.op == "scan":
            name = self.scans[expr.attr, copy.row, copy.unit]
            return f"{name}[{copy.lane}]" if copy.lane else name
        key = self._key(expr, copy, "value")
        found = frame.find(key)
        if found is None:
            home = frame.home(expr)
            varies = self.varies(expr, copy)
            text = self._text(expr, copy, home, varies=varies)
            kind = self.lanes.vector(expr.dtype) if varies else SCALAR[expr.dtype]
            found = self.fresh()
            home.lines.add(f"const {kind} {found} = {text};")
            home.names[key] = found
            if expr in self.staged and varies and expr not in self.computed:
                spot = self.staged[expr]
                part = "" if copy.part is None else f", {copy.part}"
                home.lines.add(f"ke_write({spot.buffer} + {self._spot(spot, copy, home)}, {found}{part});")
        return found

    def _row(self, expr: Expr, copy: Copy) -> str:
        stage, component = expr.attr
        name = f"{self.rows[stage, component]}_{copy.row}"
        if not self.vector_rows:
            return name
        return f"{name}_{copy.unit}[{copy.lane}]" if copy.lane else f"{name}_{copy.unit}"

    def _text(self, expr: Expr, copy: Copy, frame: Frame, *, varies: bool) -> str:
        if varies and expr in self.computed:
            spot = self.staged[expr]
            part = "" if copy.part is None else f", {copy.part}"
            return f"ke_read<{self.lanes.vector(expr.dtype)}>({spot.buffer} + {self._spot(spot, copy, frame)}{part})"
        if expr.op == "load":
            return self._load(expr, copy, frame, varies=varies)
        if expr.op == "index":
            return self._position(expr, copy, frame, varies=varies)
        if expr.op == "guard":
            return self._guard(expr, copy, frame, varies=varies)
        if not varies:
            return ops.scalar(expr, [self.value(a, copy, frame) for a in expr.args])
        text = ops.vector(expr, [self.vector(a, copy, frame) for a in expr.args], self.lanes)
        return text if text is not None else self.lane_by_lane(expr, copy, frame)

    def _spot(self, spot: Staged, copy: Copy, frame: Frame) -> str:
        shift = copy.row * spot.row_step + copy.unit * spot.unit_step
        return self.index_text(spot.offset + shift, replace(copy, row=0, unit=0), frame)

    # ------------------------------------------------------------------ memory

    def _load(self, expr: Expr, copy: Copy, frame: Frame, *, varies: bool) -> str:
        buffer, (offset,), _ = expr.attr
        if not varies:
            return f"ke_get<{SCALAR[expr.dtype]}>({buffer} + {self.index_text(offset, copy, frame)})"
        step = offset.coefficient(self.vec)
        if step is None:
            return self.lane_by_lane(expr, copy, frame)
        kind, part = self.lanes.vector(expr.dtype), "" if copy.part is None else f", {copy.part}"
        place = f"{buffer} + {self.index_text(offset, copy, frame)}"
        return f"ke_read<{kind}>({place}{part})" if step == 1 else f"ke_read_strided<{kind}>({place}, {step}{part})"

    def _position(self, expr: Expr, copy: Copy, frame: Frame, *, varies: bool) -> str:
        index: Index = expr.attr
        if not varies:
            return self.index_text(index, copy, frame)
        step = index.coefficient(self.vec) if self.vec else 0
        if step is None:
            return self.lane_by_lane(expr, copy, frame)
        kind = self.lanes.vector(DType.I64)
        return f"ke_splat<{kind}>({self.index_text(index, copy, frame)}) + ke_ids<{kind}>() * {step}"

    def _guard(self, expr: Expr, copy: Copy, frame: Frame, *, varies: bool) -> str:
        """``value`` where all conditions hold, evaluated nowhere else."""
        if varies and (isinstance(copy.part, str) or not self._affine_guard(expr)):
            return self.lane_by_lane(expr, copy, frame)
        value, otherwise = expr.args
        kind = self.lanes.vector(expr.dtype) if varies else SCALAR[expr.dtype]
        valid = self.lanes.count if copy.part is None or isinstance(copy.part, str) else copy.part
        last = valid - 1 if varies else 0
        inside = Frame(parent=frame, barrier=True)
        pick = self.vector if varies else self.value
        inside.lines.add(f"return {pick(value, copy, inside)};")
        outside = Frame(parent=frame, barrier=True)
        rest = self.lane_by_lane(expr, copy, outside) if varies else self.value(otherwise, copy, outside)
        outside.lines.add(f"return {rest};")
        test = " && ".join(self._condition(c, copy, frame, last) for c in expr.attr)
        return (
            f"[&]() -> {kind} {{ if ({test}) {{ {' '.join(inside.lines.lines)} }} {' '.join(outside.lines.lines)} }}()"
        )

    def _affine_guard(self, expr: Expr) -> bool:
        return all(self.vec is None or c.index.coefficient(self.vec) is not None for c in expr.attr)

    def _condition(self, condition: ex.Condition, copy: Copy, frame: Frame, last: int) -> str:
        step = (condition.index.coefficient(self.vec) or 0) if self.vec else 0
        low, high = condition.index + min(step * last, 0), condition.index + max(step * last, 0)
        first = self.index_text(low, copy, frame)
        return f"{first} >= {condition.low} && {self.index_text(high, copy, frame)} < {condition.high}"

    def lane_by_lane(self, expr: Expr, copy: Copy, frame: Frame) -> str:
        """A vector computed by a scalar loop over its lanes."""
        inner = Frame(parent=frame, barrier=True)
        lane = self.fresh("l")
        single = replace(copy, lane=lane)
        operands = self._lane_operands(expr, copy, frame)
        if operands is None:
            result = self.value(expr, single, inner)
        else:
            result = ops.scalar(expr, [f"{name}[{lane}]" if vector else name for name, vector in operands])
        kind = self.lanes.vector(expr.dtype)
        each = "ke_each_mask" if expr.dtype is DType.BOOL else "ke_each"
        part = "" if copy.part is None else f", {copy.part}"
        body = " ".join([*inner.lines.lines, f"return {result};"])
        return f"{each}<{kind}>([&](int {lane}) {{ {body} }}{part})"

    def _lane_operands(self, expr: Expr, copy: Copy, frame: Frame) -> list[tuple[str, bool]] | None:
        """Arithmetic without a vector form still takes its operands from vectors."""
        if expr.op in ("load", "index", "guard") or any(a.dtype is DType.BOOL for a in expr.args):
            return None
        return [(self.value(a, copy, frame), self.varies(a, copy)) for a in expr.args]

    # ------------------------------------------------------------------ indices

    def index_text(self, index: Index, copy: Copy, frame: Frame) -> str:
        """C++ of an element offset for this copy."""
        const, parts = index.const, []
        for term, coefficient in index.terms.items():
            if isinstance(term, Axis):
                name, shift = self._axis(term, copy)
                const += coefficient * shift
                parts.append(name if coefficient == 1 else f"{name} * {coefficient}")
            elif isinstance(term, ix.Indirect):
                name = self.value(term.expr, copy, frame)  # type: ignore[arg-type]
                parts.append(f"(int64_t){name} * {coefficient}" if coefficient != 1 else f"(int64_t){name}")
            else:
                sign = "/" if isinstance(term, ix.Div) else "%"
                text = f"({self.index_text(term.inner, copy, frame)}) {sign} {term.by}"
                parts.append(f"({text}) * {coefficient}" if coefficient != 1 else f"({text})")
        if const or not parts:
            parts.append(str(const))
        return "(" + " + ".join(parts) + ")" if len(parts) > 1 else parts[0]

    def _axis(self, axis: Axis, copy: Copy) -> tuple[str, int]:
        shift = copy.row if axis == self.block else 0
        if axis == self.vec:
            shift += copy.unit * self.lanes.count
            return (f"({axis.name} + {copy.lane})" if copy.lane else axis.name), shift
        return axis.name, shift
