"""Expressions to statements: one name per value, given in the outermost scope in which it is defined (pure).

A tile has dimensions, named by a letter; an axis of the plan runs along one of them, or is a scalar of the program.
What varies along some of a tile's dimensions has extent 1 along the others, so all arithmetic broadcasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.reach import widened
from synthesizer_svc.schedule.emit.scope import Scope
from synthesizer_svc.schedule.emit.triton import ops
from synthesizer_svc.schedule.emit.triton.text import Lines
from synthesizer_svc.schedule.emit.triton.types import TL
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Write
from synthesizer_svc.schedule.lazy import Buffer


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an axis is: text of its positions, and the dimension that they lie along (empty: a scalar)."""

    text: str
    dim: str = ""


@dataclass
class Frame(Scope):
    """A scope. ``axes`` and ``results`` (of stages) are known from here on, not above."""

    axes: set[Axis] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    lines: Lines = field(default_factory=Lines)

    def home(self, axes: frozenset[Axis], results: frozenset[str]) -> Frame:
        """The outermost scope that knows ``axes`` and ``results``."""
        frame = self
        while frame.parent is not None and not frame.axes & axes and not frame.results & results:
            frame = frame.parent
        return frame


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that loads below it are masked by; ``axes`` are those it depends on."""

    name: str
    axes: frozenset[Axis]


@dataclass(frozen=True, slots=True)
class _Facts:
    axes: frozenset[Axis]
    results: frozenset[str]
    loads: bool


@dataclass
class Values:
    """State of writing one kernel. ``masks``: by dimension, the name of the mask of positions that exist."""

    buffers: Mapping[str, Buffer]
    spots: dict[Axis, Spot] = field(default_factory=dict)
    masks: dict[str, str] = field(default_factory=dict)
    result_dim: str = ""
    """The dimension along which results of rows lie."""
    scan_dims: frozenset[str] = frozenset()
    load_options: str = ""
    """Further arguments of loads that depend on one of ``streamed``: what is read once, or by one row."""
    streamed: frozenset[Axis] = frozenset()
    store_options: str = ""
    rows: dict[tuple[str, int], str] = field(default_factory=dict)
    scans: dict[str, str] = field(default_factory=dict)
    prefix: str = "t"
    """Of the names given here."""
    wide: bool = False
    """Positions have 64 bits."""
    _count: int = 0
    _facts: dict[Expr, _Facts] = field(default_factory=dict)

    def fresh(self, prefix: str = "") -> str:
        self._count += 1
        return f"{self.prefix}{prefix}{self._count}"

    def facts(self, expr: Expr) -> _Facts:
        if expr not in self._facts:
            found = ex.walk(expr)
            results = {e.attr[0] for e in found if e.op == "row"} | {e.attr for e in found if e.op == "scan"}
            self._facts[expr] = _Facts(frozenset(expr.axes), frozenset(results), any(e.op == "load" for e in found))
        return self._facts[expr]

    def dims(self, expr: Expr) -> set[str]:
        """Dimensions along which ``expr`` varies."""
        found = ex.walk(expr)
        dims = self.dims_of(self.facts(expr).axes)
        dims |= {self.result_dim} if any(e.op == "row" for e in found) else set()
        dims |= self.scan_dims if any(e.op == "scan" for e in found) else set()
        return dims - {""}

    def dims_of(self, axes: frozenset[Axis] | set[Axis]) -> set[str]:
        return {self.spots[a].dim for a in axes} - {""}

    def value(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...] = ()) -> str:
        """Name or literal of ``expr``."""
        if expr.op == "const":
            return ops.literal(expr.attr, expr.dtype)
        if expr.op == "row":
            return self.rows[expr.attr]
        if expr.op == "scan":
            return self.scans[expr.attr]
        facts = self.facts(expr)
        guards = guards if facts.loads else ()
        key = ("value", expr, guards)
        found = frame.find(key)
        if found is None:
            home = frame.home(facts.axes.union(*(g.axes for g in guards)), facts.results)
            text = self._text(expr, home, guards)
            found = self.fresh()
            home.lines.add(f"{found} = {text}")
            home.names[key] = found
        return found

    def _text(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...]) -> str:
        if expr.op == "load":
            return self.loaded(expr, frame, guards)
        if expr.op == "index":
            return f"tl.cast({self.index_text(expr.attr, frame, guards)}, tl.int64)"
        if expr.op == "guard":
            return self._guarded(expr, frame, guards)
        args = [self.value(a, frame, guards) for a in expr.args]
        if expr.op in ops.OF_TENSORS or expr.op in ("cast", "round_to"):
            args = [
                f"tl.full([], {text}, {TL[a.dtype]})" if a.op == "const" else text
                for a, text in zip(expr.args, args, strict=True)
            ]
        return ops.text(expr, args)

    # ------------------------------------------------------------------ memory

    def loaded(
        self, expr: Expr, frame: Frame, guards: tuple[Guard, ...] = (), *, other: str = "0", raw: bool = False
    ) -> str:
        """A load; converted to the type of arithmetic unless ``raw``."""
        buffer, (offset,), _ = expr.attr
        axes = _axes(offset)
        dims = self.dims_of(axes)
        masks = [self.masks[d] for d in sorted(dims) if d in self.masks]
        masks += [g.name for g in guards]
        place = self.place(buffer, offset, frame, guards)
        for guard in guards:
            if self.dims_of(guard.axes) - dims:
                place += f" + {guard.name}.to(tl.int32) * 0"
        masked = f", mask={' & '.join(masks)}, other={other}" if masks else ""
        options = self.load_options if axes & self.streamed else ""
        text = f"tl.load({place}{masked}{options})"
        dtype = self.buffers[buffer].dtype
        return text if raw or dtype is expr.dtype else f"{text}.to({TL[expr.dtype]})"

    def place(self, buffer: str, offset: Index, frame: Frame, guards: tuple[Guard, ...] = ()) -> str:
        """A pointer, scalar parts first."""
        text = self.index_text(offset, frame, guards)
        return buffer if text == "0" else f"{buffer} + {text}"

    def store(self, write: Write, value: str, frame: Frame) -> None:
        dims = self.dims_of(_axes(write.offset))
        masks = [self.masks[d] for d in sorted(dims) if d in self.masks]
        masked = f", mask={' & '.join(masks)}" if masks else ""
        place = self.place(write.buffer, write.offset, frame)
        frame.lines.add(f"tl.store({place}, {value}{masked}{self.store_options})")

    def _guarded(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...]) -> str:
        value, otherwise = expr.args
        guard = self.guard(expr, frame, guards)
        if value.op == "load" and otherwise.op == "const":
            return self.loaded(value, frame, (*guards, guard), other=ops.literal(otherwise.attr, otherwise.dtype))
        inside = self.value(value, frame, (*guards, guard))
        outside = self.value(otherwise, frame, guards)
        return f"tl.where({guard.name}, {inside}, {outside})"

    def guard(self, expr: Expr, frame: Frame, guards: tuple[Guard, ...] = ()) -> Guard:
        """The conditions of a ``guard`` expression under one name."""
        axes = frozenset(a for c in expr.attr for a in _axes(c.index))
        key = ("guard", expr.attr)
        found = frame.find(key)
        if found is None:
            home = frame.home(axes, frozenset())
            tests = []
            for condition in expr.attr:
                low, high = condition.index.range()
                text = self.index_text(condition.index, home, guards)
                tests += [f"({text} >= {condition.low})"] if low < condition.low else []
                tests += [f"({text} < {condition.high})"] if high >= condition.high else []
            found = self.fresh("g")
            home.lines.add(f"{found} = {' & '.join(tests)}")
            home.names[key] = found
        return Guard(found, axes)

    # ------------------------------------------------------------------ indices

    def index_text(self, index: Index, frame: Frame, guards: tuple[Guard, ...] = ()) -> str:
        """Text of an index: its scalar parts first, so that pointers are moved before they become blocks."""
        parts: list[tuple[int, str]] = []
        beyond = widened(index, wide=self.wide)
        for term, coefficient in index.terms.items():
            if isinstance(term, Axis):
                text = self.spots[term].text
            elif isinstance(term, ix.Indirect):
                text = self.value(term.expr, frame, guards)  # type: ignore[arg-type]
            else:
                sign = "//" if isinstance(term, ix.Div) else "%"
                text = f"(({self.index_text(term.inner, frame, guards)}) {sign} {term.by})"
            text = f"tl.cast({text}, tl.int64)" if term in beyond else text
            rank = len(self.dims_of(set(ix.axes_of_term(term))))
            parts.append((rank, text if coefficient == 1 else f"{text} * {coefficient}"))
        texts = [text for _, text in sorted(parts, key=lambda part: part[0])]
        if index.const > 0 or not texts:
            texts.append(str(index.const))
        joined = " + ".join(texts)
        return f"{joined} - {-index.const}" if index.const < 0 and index.terms else joined


def _axes(index: Index) -> set[Axis]:
    """Axes of an index, those of indirect values included."""
    return set(index.axes())


def is_wide(buffers: list[Buffer]) -> bool:
    """Whether offsets into one of ``buffers`` need 64 bits."""
    return any(sum((n - 1) * abs(s) for n, s in zip(b.shape, b.strides, strict=True)) >= 1 << 31 for b in buffers)
