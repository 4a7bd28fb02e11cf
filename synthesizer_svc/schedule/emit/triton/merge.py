"""Folds over the same elements whose results only meet per row, as one group: one launch less (pure)."""

from __future__ import annotations

from dataclasses import replace

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Plan, Stage, Write


def merged(plan: Plan) -> Plan:
    """``plan`` with groups merged into the ones after them, where these are all that read them."""
    place = 0
    while place + 1 < len(plan.groups):
        first, second = plan.groups[place : place + 2]
        one = _one(plan, first, second)
        if one is None:
            place += 1
            continue
        gone = {w.buffer for s in first.stages for w in s.writes if w is not None}
        plan = replace(
            plan,
            groups=(*plan.groups[:place], one, *plan.groups[place + 2 :]),
            buffers=tuple(b for b in plan.buffers if b.name not in gone),
        )
    return plan


def _one(plan: Plan, first: Group, second: Group) -> Group | None:
    """Both as one group under the second's name; None where that is not the same."""
    renamed = _renaming(first, second)
    if renamed is None or any(s.kind not in ("reduce", "value") or s.contraction for s in first.stages):
        return None
    written = {w.buffer: (s.name, c) for s in first.stages for c, w in enumerate(s.writes) if w is not None}
    readers = [g.name for g in plan.groups if any(load.attr[0] in written for load in g.loads())]
    temporary = all(plan.buffer(b).kind == "temp" for b in written)
    if not temporary or readers != [second.name]:
        return None
    stages = tuple(_rewritten(s, renamed) for s in first.stages)
    where = {w.buffer: w.offset for s in stages for w in s.writes if w is not None}

    def leaf(expr: Expr) -> Expr | None:
        if expr.op != "load" or where.get(expr.attr[0]) != expr.attr[1][0]:
            return None
        return ex.make("row", attr=written[expr.attr[0]], dtype=expr.dtype)

    after = tuple(
        replace(s, exprs=tuple(ex.rewrite(e, {}, leaf) for e in s.exprs)) if s.kind == "value" else s
        for s in second.stages
    )
    if any(load.attr[0] in written for s in after for load in ex.loads(*s.exprs)):
        return None
    own = tuple(replace(s, writes=(None,) * len(s.writes)) for s in stages)
    return replace(second, stages=(*own, *after), flops=first.flops + second.flops)


def _renaming(first: Group, second: Group) -> dict[Axis, Index] | None:
    """Axes of the first group as those of the second."""
    mine = {s.inner for s in first.stages if s.inner}
    theirs = {s.inner for s in second.stages if s.kind == "reduce"}
    if len(mine) != 1 or len(theirs) != 1 or any(s.contraction for s in second.stages):
        return None
    old, new = (*first.outer, *mine.pop()), (*second.outer, *theirs.pop())
    if len(first.outer) != len(second.outer) or [a.extent for a in old] != [a.extent for a in new]:
        return None
    return {a: ix.of(b) for a, b in zip(old, new, strict=True)}


def _rewritten(stage: Stage, axes: dict[Axis, Index]) -> Stage:
    memo: dict[Expr, Expr] = {}

    def inside(expr: object) -> Expr:
        return ex.rewrite(expr, axes, memo=memo)  # type: ignore[arg-type]

    return replace(
        stage,
        inner=tuple(a for old in stage.inner for a in axes[old].axes()),
        exprs=tuple(inside(e) for e in stage.exprs),
        writes=tuple(
            None if w is None else Write(buffer=w.buffer, offset=w.offset.substitute(axes, inside))
            for w in stage.writes
        ),
    )
