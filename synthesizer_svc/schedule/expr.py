"""Scalar expressions: what one element of a result is computed from (pure).

Expressions are hash-consed: two equal expressions are one object, so sharing survives every rewrite and the emitter
sees each value once. Types are those of the arithmetic: 16-bit floats compute in float32, small integers in int32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from shared.dtypes import DType
from synthesizer_svc.schedule.index import Axis, Index, Indirect, axes_of_term

TRANSCENDENTAL = frozenset(
    [
        "exp",
        "exp_nonpositive",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "erf",
        "erfc",
        "tanh",
        "sigmoid",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "pow",
        "atan2",
        "fmod",
    ]
)
COSTLY = TRANSCENDENTAL | {"div", "sqrt", "rsqrt"}


@dataclass(frozen=True, slots=True)
class Condition:
    """``low <= index < high``."""

    index: Index
    low: int
    high: int


class Expr:
    """One node. Identity is equality; make them with ``make``. ``op`` and ``attr`` by kind:

    ``const`` value · ``load`` (buffer name, indices) · ``index`` Index (as int64) · ``guard`` conditions; arguments
    (value, otherwise), the value is not evaluated where a condition fails · ``row`` (node name, component): a result of
    the same row group · ``scan`` node name · ``cast`` · otherwise an arithmetic operation without attr.
    """

    __slots__ = ("__weakref__", "args", "attr", "axes", "dtype", "op")

    def __init__(self, op: str, args: tuple[Expr, ...], attr: Any, dtype: DType) -> None:
        self.op, self.args, self.attr, self.dtype = op, args, attr, dtype
        self.axes: dict[Axis, None] = {}
        for index in indices_of(self):
            for term in index.terms:
                self.axes.update(axes_of_term(term))
        for arg in args:
            self.axes.update(arg.axes)


_interned: WeakValueDictionary[object, Expr] = WeakValueDictionary()


def make(op: str, *args: Expr, attr: Any = None, dtype: DType) -> Expr:
    """The one expression with these parts."""
    tag = (type(attr).__name__, repr(attr)) if isinstance(attr, bool | int | float) else attr
    key = (op, tuple(id(a) for a in args), tag, dtype)
    found = _interned.get(key)
    if found is None:
        found = Expr(op, args, attr, dtype)
        _interned[key] = found
    return found


def const(value: float, dtype: DType) -> Expr:
    value = float(value) if dtype.floating else int(value)
    return make("const", attr=value, dtype=dtype)


def load(buffer: str, indices: tuple[Index, ...], dtype: DType, component: int = 0) -> Expr:
    return make("load", attr=(buffer, indices, component), dtype=dtype)


def position(index: Index) -> Expr:
    """The value of an index as an int64."""
    if not index.terms:
        return const(index.const, DType.I64)
    if len(index.terms) == 1 and index.const == 0:
        ((term, coefficient),) = index.terms.items()
        if coefficient == 1 and isinstance(term, Indirect) and isinstance(term.expr, Expr):
            return term.expr
    return make("index", attr=index, dtype=DType.I64)


def as_index(expr: Expr) -> Index:
    """An integer expression used as an index; affine parts are kept visible."""
    if expr.op == "const" and isinstance(expr.attr, int):
        return Index(expr.attr, {})
    if expr.op == "index" and isinstance(expr.attr, Index):
        return expr.attr
    if expr.op == "add" and expr.dtype in (DType.I64, DType.I32):
        return as_index(expr.args[0]) + as_index(expr.args[1])
    if expr.op == "cast" and expr.args[0].dtype in (DType.I64, DType.I32) and expr.dtype in (DType.I64, DType.I32):
        return as_index(expr.args[0])
    return Index(0, {Indirect(expr): 1})


def indices_of(expr: Expr) -> tuple[Index, ...]:
    """Indices held directly by the expression."""
    if expr.op == "load":
        indices: tuple[Index, ...] = expr.attr[1]
        return indices
    if expr.op == "index":
        return (expr.attr,)
    if expr.op == "guard":
        return tuple(c.index for c in expr.attr)
    return ()


def rewrite(
    expr: Expr,
    axes: Mapping[Axis, Index],
    leaf: Callable[[Expr], Expr | None] = lambda _: None,
    memo: dict[Expr, Expr] | None = None,
) -> Expr:
    """``expr`` with axes substituted; ``leaf`` may replace any node (after its indices were rewritten)."""
    memo = {} if memo is None else memo
    if expr in memo:
        return memo[expr]

    def inside(index: Index) -> Index:
        return index.substitute(axes, lambda e: rewrite(e, axes, leaf, memo))  # type: ignore[arg-type]

    args = tuple(rewrite(a, axes, leaf, memo) for a in expr.args)
    attr = expr.attr
    if expr.op == "load":
        buffer, indices, component = expr.attr
        attr = (buffer, tuple(inside(i) for i in indices), component)
    elif expr.op == "index":
        new = position(inside(expr.attr))
        memo[expr] = leaf(new) or new
        return memo[expr]
    elif expr.op == "guard":
        attr = tuple(Condition(inside(c.index), c.low, c.high) for c in expr.attr)
        attr = tuple(c for c in attr if not _always(c))
        if not attr:
            memo[expr] = args[0]
            return args[0]
    new = make(expr.op, *args, attr=attr, dtype=expr.dtype)
    memo[expr] = leaf(new) or new
    return memo[expr]


def _always(condition: Condition) -> bool:
    low, high = condition.index.range()
    return low >= condition.low and high < condition.high


def walk(*roots: Expr) -> list[Expr]:
    """Every distinct expression under the roots, operands first, those inside indirect indices included."""
    order: dict[Expr, None] = {}

    def visit(expr: Expr) -> None:
        if expr in order:
            return
        for index in indices_of(expr):
            for term in index.walk():
                if isinstance(term, Indirect):
                    visit(term.expr)  # type: ignore[arg-type]
        for arg in expr.args:
            visit(arg)
        order[expr] = None

    for root in roots:
        visit(root)
    return list(order)


def loads(*roots: Expr) -> list[Expr]:
    return [e for e in walk(*roots) if e.op == "load"]


def flops(*roots: Expr) -> int:
    """Arithmetic operations per element; a transcendental counts 10, a division or root 4 (instruction-count scale)."""
    total = 0
    for expr in walk(*roots):
        if expr.op in TRANSCENDENTAL:
            total += 10
        elif expr.op in COSTLY:
            total += 4
        elif expr.op not in ("const", "load", "index", "guard", "row", "scan", "cast"):
            total += 1
    return total


def is_costly(expr: Expr) -> bool:
    return any(e.op in TRANSCENDENTAL for e in walk(expr))
