"""Expressions to statements: one constant per value, in the outermost block in which it is defined (pure).

A thread computes ``width`` neighbours along one axis at a time. What is the same for all of them is computed once, in
the block of the chunk; the rest in a loop over the lanes, whose number is ``j``. Neighbours in memory that are aligned
are read and written together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.cpp.text import Lines
from synthesizer_svc.schedule.emit.cuda import ops
from synthesizer_svc.schedule.emit.cuda.types import MEMORY, SCALAR, read, written
from synthesizer_svc.schedule.emit.reach import widened
from synthesizer_svc.schedule.emit.scope import Scope
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Write
from synthesizer_svc.schedule.lazy import Buffer

VECTOR_BYTES = 16
"""Of the widest access of one thread."""


@dataclass
class Frame(Scope):
    """A block of C++. ``axes`` and ``results`` (of stages) are known from here on, not above."""

    axes: set[Axis] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    lines: Lines = field(default_factory=Lines)

    def home(self, axes: set[Axis], results: set[str]) -> Frame:
        """The outermost block that knows ``axes`` and ``results``."""
        frame = self
        while frame.parent is not None and not frame.axes & axes and not frame.results & results:
            frame = frame.parent
        return frame


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that values below it are computed under; ``axes`` are those it depends on."""

    name: str
    axes: frozenset[Axis]


@dataclass
class Values:
    """State of writing one kernel. ``spots``: C++ text of each axis' position."""

    buffers: Mapping[str, Buffer]
    spots: dict[Axis, str] = field(default_factory=dict)
    rows: dict[tuple[str, int], str] = field(default_factory=dict)
    """Names of what stages gave."""
    vectors: dict[Expr, str] = field(default_factory=dict)
    """Loads that are at hand as vectors: text of the lane's element."""
    wide: bool = False
    """Positions have 64 bits."""
    _count: int = 0

    def fresh(self, prefix: str = "t") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    # ------------------------------------------------------------------ values

    def value(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...] = ()) -> str:
        """Name or literal of ``expr``."""
        if expr.op == "const":
            return ops.literal(expr.attr, expr.dtype)
        if expr.op == "row":
            return self.rows[expr.attr]
        inside = ex.walk(expr)
        guards = guards if any(e.op == "load" for e in inside) else ()
        key = ("value", expr, guards)
        found = frame.find(key)
        if found is None:
            results = {e.attr[0] for e in inside if e.op == "row"}
            home = frame.home(set(expr.axes).union(*(g.axes for g in guards)), results)
            text = self._text(expr, home, guards)
            found = self.fresh()
            home.lines.add(f"const {SCALAR[expr.dtype]} {found} = {text};")
            home.names[key] = found
        return found

    def _text(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...]) -> str:
        if expr.op == "load":
            return self._loaded(expr, frame, guards)
        if expr.op == "index":
            return f"(int64_t)({self.index_text(expr.attr, frame, guards)})"
        if expr.op == "guard":
            guard = self._guard(expr, frame, guards)
            inside = self.value(expr.args[0], frame, (*guards, guard))
            return f"{guard.name} ? {inside} : {self.value(expr.args[1], frame, guards)}"
        return ops.text(expr, [self.value(a, frame, guards) for a in expr.args])

    def _loaded(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...]) -> str:
        buffer, (offset,), _ = expr.attr
        memory = self.buffers[buffer].dtype
        if expr in self.vectors and not guards:
            return read(memory, self.vectors[expr], expr.dtype)
        text = read(memory, f"{buffer}[{self.index_text(offset, frame, guards)}]", expr.dtype)
        if not guards:
            return text
        return f"{' && '.join(g.name for g in guards)} ? {text} : {ops.literal(0, expr.dtype)}"

    def _guard(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...]) -> Guard:
        """The conditions of a ``guard`` expression under one name."""
        axes = {a for c in expr.attr for a in c.index.axes()}
        key = ("guard", expr.attr, guards)
        found = frame.find(key)
        if found is None:
            home = frame.home(axes, set())
            tests = []
            for condition in expr.attr:
                low, high = condition.index.range()
                text = self.index_text(condition.index, home, guards)
                tests += [f"{text} >= {condition.low}"] if low < condition.low else []
                tests += [f"{text} < {condition.high}"] if high >= condition.high else []
            found = self.fresh("g")
            home.lines.add(f"const bool {found} = {' && '.join(tests)};")
            home.names[key] = found
        return Guard(found, frozenset(axes))

    # ------------------------------------------------------------------ memory

    def index_text(
        self, index: Index, frame: Frame, guards: tuple[Guard, ...] = (), base: Mapping[Axis, str] | None = None
    ) -> str:
        """C++ of an index; ``base`` has other positions of some axes."""
        parts, beyond = [], widened(index, wide=self.wide)
        for term, coefficient in index.terms.items():
            if isinstance(term, Axis):
                text = (base or {}).get(term) or self.spots[term]
            elif isinstance(term, ix.Indirect):
                text = self.value(term.expr, frame, guards)  # type: ignore[arg-type]
            else:
                sign = "/" if isinstance(term, ix.Div) else "%"
                text = f"({self.index_text(term.inner, frame, guards, base)}) {sign} {term.by}"
                text = f"({text})"
            text = f"(int64_t){text}" if term in beyond else text
            parts.append(text if coefficient == 1 else f"{text} * {coefficient}")
        if index.const or not parts:
            parts.append(str(index.const) if index.const >= 0 else f"({index.const})")
        return " + ".join(parts)

    def store(self, write: Write, text: str, dtype: DType, frame: Frame) -> str:
        """The statement that writes one element."""
        memory = self.buffers[write.buffer].dtype
        return f"{write.buffer}[{self.index_text(write.offset, frame)}] = {written(memory, text, dtype)};"

    def element(self, buffer: str) -> str:
        return MEMORY[self.buffers[buffer].dtype]


def aligned(offset: Index, axis: Axis | None, width: int, itemsize: int) -> bool:
    """Whether ``width`` neighbours along ``axis``, the first at a multiple of ``width``, lie together and aligned."""
    if axis is None or offset.coefficient(axis) != 1:
        return False
    step = min(width, VECTOR_BYTES // itemsize)
    others = (c for term, c in offset.terms.items() if term != axis)
    return offset.const % step == 0 and all(c % step == 0 for c in others)


def unguarded(*exprs: Expr) -> list[Expr]:
    """Loads that are made under no condition, each once."""
    found: dict[Expr, None] = {}

    def visit(expr: Expr) -> None:
        if expr.op == "guard":
            visit(expr.args[1])
            return
        if expr.op == "load":
            found[expr] = None
        for index in ex.indices_of(expr):
            for term in index.walk():
                if isinstance(term, ix.Indirect):
                    visit(term.expr)  # type: ignore[arg-type]
        for arg in expr.args:
            visit(arg)

    for expr in exprs:
        visit(expr)
    return list(found)
