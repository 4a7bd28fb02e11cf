"""Index algebra: integer expressions over loop axes, kept affine wherever arithmetic allows (pure).

An index is ``const + sum(coefficient * term)``; a term is a loop axis, a floor division or remainder that could not be
simplified away, or an indirect value read from memory. Views of views thus end up as plain strides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop axis: takes the values ``0 .. extent-1``. Names are unique within a plan."""

    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class Div:
    """``inner // by`` for a non-negative ``inner``."""

    inner: Index
    by: int


@dataclass(frozen=True, slots=True)
class Mod:
    """``inner % by`` for a non-negative ``inner``."""

    inner: Index
    by: int


@dataclass(frozen=True, slots=True)
class Indirect:
    """The value of an integer expression (an ``expr.Expr``), e.g. a class label."""

    expr: object


Term = Axis | Div | Mod | Indirect


class Index:
    """Immutable sum of terms. Equality ignores the order of terms; printing keeps it, so emitted text is stable."""

    __slots__ = ("const", "hash", "terms")

    def __init__(self, const: int, terms: Mapping[Term, int]) -> None:
        self.const = const
        self.terms: dict[Term, int] = {t: c for t, c in terms.items() if c != 0}
        self.hash = hash((const, frozenset(self.terms.items())))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and (
            self is other or (self.hash == other.hash and self.const == other.const and self.terms == other.terms)
        )

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.const + other, self.terms)
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            terms[term] = terms.get(term, 0) + coefficient
        return _recombined(Index(self.const + other.const, terms))

    def __mul__(self, factor: int) -> Index:
        return Index(self.const * factor, {t: c * factor for t, c in self.terms.items()})

    def __floordiv__(self, by: int) -> Index:
        if by == 1:
            return self
        whole, rest = self._split(by)
        quotient = Index(whole.const // by, {t: c // by for t, c in whole.terms.items()})
        low, high = rest.range()
        if low >= 0 and high < by:
            return quotient
        return quotient + _div(rest, by)

    def __mod__(self, by: int) -> Index:
        if by == 1:
            return Index(0, {})
        _, rest = self._split(by)
        low, high = rest.range()
        if low >= 0 and high < by:
            return rest
        return _mod(rest, by)

    def _split(self, by: int) -> tuple[Index, Index]:
        """Parts divisible by ``by`` and the rest; the rest's constant lies in ``[0, by)``."""
        whole = {t: c for t, c in self.terms.items() if c % by == 0}
        rest = {t: c for t, c in self.terms.items() if c % by != 0}
        return Index(self.const - self.const % by, whole), Index(self.const % by, rest)

    def range(self) -> tuple[float, float]:
        """Least and greatest value, both inclusive; infinite when a term's value is unknown."""
        low: float = self.const
        high: float = self.const
        for term, coefficient in self.terms.items():
            ends = [coefficient * end for end in _term_range(term)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def coefficient(self, axis: Axis) -> int | None:
        """Stride along ``axis``; None when the index is not affine in it."""
        for term in self.terms:
            if not isinstance(term, Axis) and axis in axes_of_term(term):
                return None
        return self.terms.get(axis, 0)

    def axes(self) -> dict[Axis, None]:
        """Axes it depends on, in order of appearance, inside indirect values too."""
        found: dict[Axis, None] = {}
        for term in self.terms:
            found.update(axes_of_term(term))
        return found

    def substitute(self, axes: Mapping[Axis, Index], indirect: Callable[[object], object]) -> Index:
        """Axes replaced and the result simplified anew; ``indirect`` rewrites the expressions of indirect terms."""
        total = Index(self.const, {})
        for term, coefficient in self.terms.items():
            if isinstance(term, Axis):
                new = axes.get(term) or of(term)
            elif isinstance(term, Div):
                new = term.inner.substitute(axes, indirect) // term.by
            elif isinstance(term, Mod):
                new = term.inner.substitute(axes, indirect) % term.by
            else:
                new = Index(0, {Indirect(indirect(term.expr)): 1})
            total = total + new * coefficient
        return total

    def walk(self) -> Iterator[Term]:
        """Every term, nested ones included."""
        for term in self.terms:
            yield term
            if isinstance(term, Div | Mod):
                yield from term.inner.walk()


def of(axis: Axis) -> Index:
    """The index that is just ``axis`` (zero for an axis of extent 1)."""
    return Index(0, {axis: 1} if axis.extent != 1 else {})


def constant(value: int) -> Index:
    return Index(value, {})


def linear(indices: tuple[Index, ...], strides: tuple[int, ...]) -> Index:
    """The element offset ``sum(index * stride)``."""
    total = constant(0)
    for index, stride in zip(indices, strides, strict=True):
        total = total + index * stride
    return total


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def unravel(flat: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """Multi-dimensional indices of a row-major position."""
    out = []
    for extent, stride in zip(shape, contiguous(shape), strict=True):
        out.append(constant(0) if extent == 1 else (flat // stride) % extent)
    return tuple(out)


def axes_of_term(term: Term) -> dict[Axis, None]:
    if isinstance(term, Axis):
        return {term: None}
    if isinstance(term, Indirect):
        axes: dict[Axis, None] = term.expr.axes  # type: ignore[attr-defined]  # an expr.Expr, which imports this module
        return axes
    return term.inner.axes()


def _term_range(term: Term) -> tuple[float, float]:
    if isinstance(term, Axis):
        return 0, term.extent - 1
    if isinstance(term, Mod):
        return 0, term.by - 1
    if isinstance(term, Div):
        low, high = term.inner.range()
        return low // term.by, high // term.by
    return float("-inf"), float("inf")


def _common(rest: Index, by: int) -> int:
    """A factor that can leave a division: it divides every coefficient and ``by``, and the constant is floored."""
    factor = by
    for coefficient in rest.terms.values():
        factor = gcd(factor, coefficient)
    return factor


def _div(rest: Index, by: int) -> Index:
    factor = _common(rest, by)
    if factor > 1:
        rest = Index(rest.const // factor, {t: c // factor for t, c in rest.terms.items()})
        return rest // (by // factor)
    if rest.const == 0 and len(rest.terms) == 1:
        ((term, coefficient),) = rest.terms.items()
        if coefficient == 1 and isinstance(term, Div):
            return term.inner // (term.by * by)
        if coefficient == 1 and isinstance(term, Mod) and term.by % by == 0:
            return (term.inner // by) % (term.by // by)
    return Index(0, {Div(rest, by): 1})


def _mod(rest: Index, by: int) -> Index:
    factor = _common(rest, by)
    if factor > 1 and rest.const % factor == 0:
        inner = Index(rest.const // factor, {t: c // factor for t, c in rest.terms.items()})
        return (inner % (by // factor)) * factor
    if rest.const == 0 and len(rest.terms) == 1:
        ((term, coefficient),) = rest.terms.items()
        if coefficient == 1 and isinstance(term, Mod) and term.by % by == 0:
            return term.inner % by
    return Index(0, {Mod(rest, by): 1})


def _recombined(index: Index) -> Index:
    """``c*k*(x//k) + c*(x%k)`` written as ``c*x`` again."""
    for term, coefficient in index.terms.items():
        if isinstance(term, Mod):
            whole = term.inner // term.by
            if len(whole.terms) == 1 and whole.const == 0:
                ((quotient, one),) = whole.terms.items()
                if one == 1 and index.terms.get(quotient) == coefficient * term.by:
                    terms = {t: c for t, c in index.terms.items() if t not in (term, quotient)}
                    return Index(index.const, terms) + term.inner * coefficient
    return index
