"""Merging loop axes that memory does not tell apart: long loops vectorize, nests of short ones do not (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Stage, Write


def collapse(outer: tuple[Axis, ...], stages: tuple[Stage, ...]) -> tuple[tuple[Axis, ...], tuple[Stage, ...]]:
    """Adjacent axes merged wherever every index treats them as one; axes of extent 1 dropped."""
    outer, stages = _without_ones(outer, stages)
    while True:
        indices = list(_indices(stages))
        pair = next((p for p in _pairs(outer, stages) if all(_mergeable(i, *p) for i in indices)), None)
        if pair is None:
            return outer, stages
        a, b = pair
        merged = Axis(b.name, a.extent * b.extent)
        # The merged axis keeps b's name; a fresh Axis object differs from b by its extent.
        axes = {a: ix.of(merged) // b.extent, b: ix.of(merged) % b.extent}
        outer = _merge(outer, pair, merged)
        stages = tuple(_rewritten(s, axes, _merge(s.inner, pair, merged)) for s in stages)


def _pairs(outer: tuple[Axis, ...], stages: tuple[Stage, ...]) -> Iterable[tuple[Axis, Axis]]:
    """Adjacent axes that are adjacent, or both absent, in every loop nest."""
    nests = [outer, *(s.inner for s in stages)]
    for nest in nests:
        for a, b in pairwise(nest):
            if all((a not in n and b not in n) or _adjacent(n, a, b) for n in nests):
                yield a, b


def _adjacent(nest: tuple[Axis, ...], a: Axis, b: Axis) -> bool:
    return a in nest and b in nest and nest.index(b) == nest.index(a) + 1


def _merge(nest: tuple[Axis, ...], pair: tuple[Axis, Axis], merged: Axis) -> tuple[Axis, ...]:
    return tuple(merged if axis == pair[1] else axis for axis in nest if axis != pair[0])


def _mergeable(index: Index, a: Axis, b: Axis) -> bool:
    of_a, of_b = index.coefficient(a), index.coefficient(b)
    return of_a is not None and of_b is not None and of_a == of_b * b.extent


def _indices(stages: tuple[Stage, ...]) -> Iterable[Index]:
    """Every index of the stages; of indirect ones only their affine part, the rest is listed by itself."""
    for stage in stages:
        for write in stage.writes:
            if write is not None:
                yield write.offset
        for expr in ex.walk(*stage.exprs):
            for index in ex.indices_of(expr):
                yield Index(index.const, {t: c for t, c in index.terms.items() if not isinstance(t, ix.Indirect)})


def _rewritten(stage: Stage, axes: dict[Axis, Index], inner: tuple[Axis, ...]) -> Stage:
    memo: dict[ex.Expr, ex.Expr] = {}

    def inside(expr: object) -> ex.Expr:
        return ex.rewrite(expr, axes, memo=memo)  # type: ignore[arg-type]

    return replace(
        stage,
        inner=inner,
        exprs=tuple(inside(e) for e in stage.exprs),
        writes=tuple(
            None if w is None else Write(buffer=w.buffer, offset=w.offset.substitute(axes, inside))
            for w in stage.writes
        ),
    )


def _without_ones(outer: tuple[Axis, ...], stages: tuple[Stage, ...]) -> tuple[tuple[Axis, ...], tuple[Stage, ...]]:
    return _looped(outer), tuple(replace(s, inner=_looped(s.inner)) for s in stages)


def _looped(nest: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(a for a in nest if a.extent != 1)
