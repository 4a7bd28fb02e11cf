"""Unifying loop axes: making a consumer run along the axes its producer ran along (pure).

Both sides read or write a buffer in row-major order, so each is a mixed-radix number; their common refinement splits
axes on either side until the pieces agree (``n*C + c`` meets ``(n, c)``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.index import Axis, Index

NewAxis = Callable[[int], Axis]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Axes to substitute on the producer's and on the consumer's side."""

    producer: dict[Axis, Index]
    consumer: dict[Axis, Index]


def digits(position: Index, numel: int) -> list[tuple[int, Axis]] | None:
    """``position`` as a dense mixed-radix number: (stride, axis), least significant first; None when it is not one."""
    if position.const != 0:
        return None
    found = []
    for term, coefficient in position.terms.items():
        if not isinstance(term, Axis):
            return None
        found.append((coefficient, term))
    found.sort(key=lambda digit: digit[0])
    step = 1
    for stride, axis in found:
        if stride != step:
            return None
        step *= axis.extent
    return found if step == numel else None


def unify(producer: Index, consumer: Index, numel: int, new_axis: NewAxis) -> Binding | None:
    """Make the two positions equal, or None when no splitting of axes can."""
    left, right = digits(producer, numel), digits(consumer, numel)
    if left is None or right is None:
        return None
    cuts = sorted({s for s, _ in left} | {s for s, _ in right} | {numel})
    if any(high % low for low, high in pairwise(cuts)):
        return None
    whole = {(s, a.extent): a for s, a in left}
    pieces: list[tuple[int, Axis]] = []
    for low, high in pairwise(cuts):
        pieces.append((low, whole.get((low, high // low)) or new_axis(high // low)))
    return Binding(producer=_substitution(left, pieces), consumer=_substitution(right, pieces))


def _substitution(old: list[tuple[int, Axis]], pieces: list[tuple[int, Axis]]) -> dict[Axis, Index]:
    out: dict[Axis, Index] = {}
    for stride, axis in old:
        total = ix.constant(0)
        # Most significant piece first, so that split axes keep their order in the loop nest.
        for low, piece in reversed(pieces):
            if stride <= low < stride * axis.extent:
                total = total + ix.of(piece) * (low // stride)
        if total != ix.of(axis):
            out[axis] = total
    return out


def row_major(axes: tuple[Axis, ...]) -> Index:
    """The position within the block that ``axes`` span."""
    return ix.linear(tuple(ix.of(a) for a in axes), ix.contiguous(tuple(a.extent for a in axes)))
