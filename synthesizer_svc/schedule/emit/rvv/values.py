"""Expressions to statements: one C constant per value and copy, placed in the outermost block that allows it (pure).

A loop body is written for several *copies* at once: rows of a row block and strips of an unrolled loop. What varies
along the vectorised axis is a vector with the strip's own length, anything else a scalar, which instructions take as
they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.rvv import ops
from synthesizer_svc.schedule.emit.rvv.ops import Operand
from synthesizer_svc.schedule.emit.rvv.text import Lines
from synthesizer_svc.schedule.emit.rvv.types import RegisterGroup
from synthesizer_svc.schedule.emit.scope import Scope
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.index import Axis, Index

SCALAR = {DType.F32: "float", DType.BOOL: "int"}


@dataclass(frozen=True, slots=True)
class Copy:
    """Row ``row`` of the block, strip ``unit`` of the unrolled ones; ``vl`` is the C name of the strip's length."""

    row: int = 0
    unit: int = 0
    vl: str = "vl"


@dataclass
class Frame(Scope):
    """A block of C. ``bound`` are the axes whose loops opened it; ``holds_rows``: results of rows are declared here."""

    bound: frozenset[Axis] = frozenset()
    holds_rows: bool = False
    lines: Lines = field(default_factory=Lines)

    def home(self, expr: Expr) -> Frame:
        """The outermost frame in which ``expr`` is defined."""
        frame = self
        row = any(e.op == "row" for e in ex.walk(expr))
        while frame.parent is not None and not frame.bound & expr.axes.keys():
            if row and frame.holds_rows:
                break
            frame = frame.parent
        return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A value that the pass computing it keeps in a row buffer: where, for row 0, and how far rows are apart."""

    buffer: str
    offset: Index
    row_step: int


@dataclass
class Values:
    """State of emitting one row body. ``vector_rows``: results of the row group are vectors (rows lie along lanes)."""

    group: RegisterGroup
    vec: Axis | None
    block: Axis | None
    vector_rows: bool
    used: set[tuple[str, int]]
    rows: dict[tuple[str, int], str] = field(default_factory=dict)
    staged: dict[Expr, Staged] = field(default_factory=dict)
    computed: set[Expr] = field(default_factory=set)
    """Staged values that an earlier pass has written."""
    uses: Counter[Expr] = field(default_factory=Counter)
    """How often an expression is an operand: a product used once joins the addition that uses it."""
    needed: frozenset[tuple[str, int]] = frozenset()
    """Results of rows that something else uses."""
    _count: int = 0

    def fresh(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def varies(self, expr: Expr) -> bool:
        """Whether lanes differ."""
        row = self.vector_rows and any(e.op == "row" for e in ex.walk(expr))
        return self.vec in expr.axes or row

    def _key(self, expr: Expr, copy: Copy, kind: str) -> object:
        by_row = self.block in expr.axes or any(e.op == "row" for e in ex.walk(expr))
        return kind, expr, copy.row if by_row else 0, (copy.unit, copy.vl) if self.varies(expr) else ()

    # ------------------------------------------------------------------ values

    def operand(self, expr: Expr, copy: Copy, frame: Frame) -> Operand:
        return Operand(self.value(expr, copy, frame), self.varies(expr))

    def vector(self, expr: Expr, copy: Copy, frame: Frame) -> str:
        """C text of a vector holding ``expr``; a scalar is spread over the lanes."""
        text = self.value(expr, copy, frame)
        if self.varies(expr):
            return text
        if expr.dtype is DType.BOOL:
            byte = f"__riscv_vmv_v_x_{self.group.bytes_name}({text}, {copy.vl})"
            return f"__riscv_vmsne({byte}, 0, {copy.vl})"
        return f"__riscv_vfmv_v_f_f32{self.group.name}({text}, {copy.vl})"

    def value(self, expr: Expr, copy: Copy, frame: Frame) -> str:
        """Name or literal of ``expr``: a vector where lanes differ, else a scalar."""
        if expr.op == "const":
            return ops.literal(expr.attr, expr.dtype)
        if expr.op == "row":
            stage, component = expr.attr
            name = f"{self.rows[stage, component]}_{copy.row}"
            return f"{name}_{copy.unit}" if self.vector_rows else name
        key = self._key(expr, copy, "value")
        found = frame.find(key)
        if found is None:
            home = frame.home(expr)
            varies = self.varies(expr)
            text = self._text(expr, copy, home, varies=varies)
            found = self.fresh()
            home.lines.add(f"const {self._type(expr, varies=varies)} {found} = {text};")
            home.names[key] = found
            if varies and expr in self.staged and expr not in self.computed:
                home.lines.add(f"__riscv_vse32({self._spot(expr, copy, home)}, {found}, {copy.vl});")
        return found

    def _type(self, expr: Expr, *, varies: bool) -> str:
        if not varies:
            return SCALAR[expr.dtype]
        return self.group.masks if expr.dtype is DType.BOOL else self.group.floats

    def _text(self, expr: Expr, copy: Copy, frame: Frame, *, varies: bool) -> str:
        if varies and expr in self.computed:
            return f"__riscv_vle32_v_f32{self.group.name}({self._spot(expr, copy, frame)}, {copy.vl})"
        if expr.op == "load":
            return self._load(expr, copy, frame, varies=varies)
        if not varies:
            return ops.scalar(expr, [self.value(a, copy, frame) for a in expr.args], self.used)
        fused = self._fused(expr, copy, frame)
        if fused is not None:
            return fused
        varying = [self.varies(a) for a in expr.args]
        operands = [
            Operand(self.vector(a, copy, frame), vector=True) if must else self.operand(a, copy, frame)
            for a, must in zip(expr.args, ops.spread(expr, varying), strict=True)
        ]
        return ops.vector(expr, operands, copy.vl, self.group.lmul, self.used)

    def _fused(self, expr: Expr, copy: Copy, frame: Frame) -> str | None:
        """A product and the sum or difference it is used by, as one instruction that rounds once."""
        if expr.op not in ("add", "sub"):
            return None
        for place, name in ((0, "vfmadd" if expr.op == "add" else "vfmsub"), (1, _SECOND[expr.op])):
            product, other = expr.args[place], expr.args[1 - place]
            single = product.op == "mul" and self.uses[product] == 1 and self.varies(product)
            if not single or not self.varies(other) or product in self.staged:
                continue
            x, y = product.args if self.varies(product.args[0]) else product.args[::-1]
            texts = (self.value(e, copy, frame) for e in (x, y, other))
            return f"__riscv_{name}({', '.join(texts)}, {copy.vl})"
        return None

    # ------------------------------------------------------------------ memory

    def _spot(self, expr: Expr, copy: Copy, frame: Frame) -> str:
        spot = self.staged[expr]
        place = self.index_text(spot.offset + copy.row * spot.row_step, Copy(0, copy.unit, copy.vl), frame)
        return f"{spot.buffer} + {place}"

    def _load(self, expr: Expr, copy: Copy, frame: Frame, *, varies: bool) -> str:
        buffer, (offset,), _ = expr.attr
        place = self.index_text(offset, copy, frame)
        if not varies:
            return f"{buffer}[{place}]"
        step = self.step(offset)
        if expr.dtype is DType.BOOL:
            kind = self.group.bytes_name
            read = (
                f"vle8_v_{kind}({buffer} + {place}, " if step == 1 else f"vlse8_v_{kind}({buffer} + {place}, {step}, "
            )
            return f"__riscv_vmsne(__riscv_{read}{copy.vl}), 0, {copy.vl})"
        kind = f"f32{self.group.name}"
        if step == 1:
            return f"__riscv_vle32_v_{kind}({buffer} + {place}, {copy.vl})"
        return f"__riscv_vlse32_v_{kind}({buffer} + {place}, {4 * step}, {copy.vl})"

    def step(self, offset: Index) -> int:
        """Elements from lane to lane.

        Raises:
            Unsupported: they are not the same everywhere.
        """
        step = offset.coefficient(self.vec) if self.vec is not None else 0
        if step is None:
            raise Unsupported("index", "lanes at irregular distances are not written for the vector extension")
        return step

    def store(self, text: str, dtype: DType, buffer: str, offset: Index, copy: Copy, frame: Frame) -> None:
        """Write a vector."""
        step, place = self.step(offset), f"{buffer} + {self.index_text(offset, copy, frame)}"
        if dtype is DType.BOOL:
            kind = self.group.bytes_name
            text = f"__riscv_vmerge(__riscv_vmv_v_x_{kind}(0, {copy.vl}), 1, {text}, {copy.vl})"
        bits, size = ("8", 1) if dtype is DType.BOOL else ("32", 4)
        if step == 1:
            frame.lines.add(f"__riscv_vse{bits}({place}, {text}, {copy.vl});")
        else:
            frame.lines.add(f"__riscv_vsse{bits}({place}, {step * size}, {text}, {copy.vl});")

    # ------------------------------------------------------------------ indices

    def index_text(self, index: Index, copy: Copy, frame: Frame) -> str:
        """C of an element offset for this copy."""
        const, parts = index.const, []
        for term, coefficient in index.terms.items():
            if isinstance(term, Axis):
                const += coefficient * (copy.row if term == self.block else 0)
                name = f"{term.name}_{copy.unit}" if term == self.vec and copy.unit else term.name
                parts.append(name if coefficient == 1 else f"{name} * {coefficient}")
            elif isinstance(term, ix.Indirect):
                raise Unsupported("index", "positions read from memory are not written for the vector extension")
            else:
                sign = "/" if isinstance(term, ix.Div) else "%"
                text = f"({self.index_text(term.inner, copy, frame)}) {sign} {term.by}"
                parts.append(f"({text}) * {coefficient}" if coefficient != 1 else f"({text})")
        if const or not parts:
            parts.append(str(const))
        return "(" + " + ".join(parts) + ")" if len(parts) > 1 else parts[0]


_SECOND = {"add": "vfmadd", "sub": "vfnmsub"}
"""The product is the second operand: c + a b, and c - a b."""
