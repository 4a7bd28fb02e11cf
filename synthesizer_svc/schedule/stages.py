"""Stages under a schedule: composites expanded, divisions rewritten, stages ordered into passes (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.ir import Group, Stage
from synthesizer_svc.schedule.schedule import Value

SAMPLES = 16
"""Elements whose average shifts one-pass variance: the shift then adds about 1/16 to the squares."""

STATISTICS, ONLINE, CHUNKED = "softmax_stats", "online", "chunked"
"""How maximum and sum of exponentials of a row are had; ``chunked`` is online, with a maximum for each chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Stages that share one loop over ``inner``; value stages that follow from them are in ``after``."""

    inner: tuple[Axis, ...]
    stages: tuple[Stage, ...]
    after: tuple[Stage, ...]


def expanded(group: Group, choices: Mapping[str, Value]) -> tuple[Stage, ...]:
    """``moments`` and ``softstats`` as plain reductions (or one ``online`` reduction), as the schedule chooses."""
    out: list[Stage] = []
    # Online statistics are written for lanes along the row only.
    online = choices.get(STATISTICS) in (ONLINE, CHUNKED) and choices.get("lanes") != "outer"
    renamed: dict[tuple[str, int], Expr] = {}

    def leaf(expr: Expr) -> Expr | None:
        return renamed.get(expr.attr) if expr.op == "row" else None

    for original in group.stages:
        stage = replace(original, exprs=tuple(ex.rewrite(e, {}, leaf) for e in original.exprs))
        if stage.op == "moments" and stage.kind == "reduce":
            parts, results = (_shifted if choices.get("variance") == "shifted" else _two_pass)(stage)
        elif stage.op == "softstats" and stage.kind == "reduce" and not online:
            parts, results = _softstats(stage)
        else:
            out.append(stage)
            continue
        out.extend(parts)
        for component, result in enumerate(results):
            renamed[original.name, component] = result
            if original.writes[component] is not None:
                out.append(_value(f"{stage.name}_w{component}", result, stage, original, component))
    if choices.get("division") == "reciprocal":
        out = [_reciprocal(stage) for stage in out]
    return tuple(out)


def _row(name: str, dtype: DType) -> Expr:
    return ex.make("row", attr=(name, 0), dtype=dtype)


def _reduce(name: str, op: str, value: Expr, like: Stage) -> Stage:
    return replace(like, name=name, kind="reduce", op=op, exprs=(value,), writes=(None,))


def _value(name: str, value: Expr, like: Stage, original: Stage | None = None, component: int = 0) -> Stage:
    write = original.writes[component] if original is not None else None
    return replace(like, name=name, kind="value", op="store", exprs=(value,), inner=(), writes=(write,))


def _two_pass(stage: Stage) -> tuple[list[Stage], list[Expr]]:
    """Mean first, then squared deviations from it: exact, one more pass over the row."""
    x, n = stage.exprs[0], stage.inner_size
    total = _row(f"{stage.name}_sum", stage.dtype)
    mean = _row(f"{stage.name}_mean", stage.dtype)
    deviation = ex.make("sub", x, mean, dtype=x.dtype)
    parts = [
        _reduce(f"{stage.name}_sum", "sum", x, stage),
        _value(f"{stage.name}_mean", ex.make("div", total, ex.const(n, stage.dtype), dtype=stage.dtype), stage),
        _reduce(f"{stage.name}_sq", "sum", ex.make("mul", deviation, deviation, dtype=x.dtype), stage),
    ]
    return parts, [mean, _row(f"{stage.name}_sq", stage.dtype)]


def _shifted(stage: Stage) -> tuple[list[Stage], list[Expr]]:
    """One pass: sums of ``d = x - shift`` and ``d²``; a shift near the mean keeps cancellation away."""
    x, n, t = stage.exprs[0], stage.inner_size, stage.dtype
    sample = _sample(x, stage.inner, t)
    shift, s1, s2 = (_row(f"{stage.name}_{part}", t) for part in ("shift", "s1", "s2"))
    d = ex.make("sub", x, shift, dtype=t)
    average = ex.make("div", s1, ex.const(n, t), dtype=t)
    squares = ex.make("sub", s2, ex.make("mul", s1, average, dtype=t), dtype=t)
    clipped = ex.make("max", squares, ex.const(0, t), dtype=t)
    parts = [
        _value(f"{stage.name}_shift", sample, stage),
        _reduce(f"{stage.name}_s1", "sum", d, stage),
        _reduce(f"{stage.name}_s2", "sum", ex.make("mul", d, d, dtype=t), stage),
        _value(f"{stage.name}_mean", ex.make("add", shift, average, dtype=t), stage),
        _value(f"{stage.name}_sq", clipped, stage),
    ]
    return parts, [_row(f"{stage.name}_mean", t), _row(f"{stage.name}_sq", t)]


def _sample(x: Expr, inner: tuple[Axis, ...], dtype: DType) -> Expr:
    """The average of up to SAMPLES elements spread over the row: within a fraction of its deviation from the mean."""
    total = None
    for sample in range(SAMPLES):
        spot = {axis: ix.constant(sample * axis.extent // SAMPLES) for axis in inner}
        value = ex.rewrite(x, spot)
        total = value if total is None else ex.make("add", total, value, dtype=dtype)
    assert total is not None
    return ex.make("mul", total, ex.const(1 / SAMPLES, dtype), dtype=dtype)


def _softstats(stage: Stage) -> tuple[list[Stage], list[Expr]]:
    """Maximum, then the sum of exponentials. A NaN may pass the maximum by: it comes back through the sum."""
    x = stage.exprs[0]
    top = _row(f"{stage.name}_max", stage.dtype)
    shifted = ex.make("sub", x, top, dtype=x.dtype)
    parts = [
        _reduce(f"{stage.name}_max", "max_raw", x, stage),
        _reduce(f"{stage.name}_sum", "sum", ex.make("exp_nonpositive", shifted, dtype=x.dtype), stage),
    ]
    return parts, [top, _row(f"{stage.name}_sum", stage.dtype)]


def _reciprocal(stage: Stage) -> Stage:
    """Divisions by what is fixed within a row become multiplications by its reciprocal."""

    def leaf(expr: Expr) -> Expr | None:
        if expr.op != "div" or not expr.dtype.floating or expr.args[1].op == "const":
            return None
        top, bottom = expr.args
        if bottom.axes.keys() & set(stage.inner) or not top.axes.keys() & set(stage.inner):
            return None
        one = ex.make("div", ex.const(1, expr.dtype), bottom, dtype=expr.dtype)
        return ex.make("mul", top, one, dtype=expr.dtype)

    return replace(stage, exprs=tuple(ex.rewrite(e, {}, leaf) for e in stage.exprs)) if stage.inner else stage


def passes(stages: tuple[Stage, ...]) -> tuple[Pass, ...]:
    """Stages by the earliest pass they can run in; a scan runs again in every pass that needs its elements."""
    ready: dict[str, int] = {}
    place: dict[str, int] = {}
    for stage in stages:
        found = ex.walk(*stage.exprs)
        at = max((ready[e.attr[0]] for e in found if e.op == "row"), default=0)
        at = max([at, *(place[e.attr] for e in found if e.op == "scan")])
        place[stage.name] = at
        ready[stage.name] = at if stage.kind == "value" else at + 1
    loops: list[Pass] = []
    for level in range(max(ready.values(), default=0) + 1):
        mine = [s for s in stages if place[s.name] == level]
        values = tuple(s for s in mine if s.kind == "value")
        loops.append(Pass(inner=(), stages=(), after=values))
        for inner in dict.fromkeys(s.inner for s in mine if s.kind != "value"):
            looped = [s for s in mine if s.kind != "value" and s.inner == inner]
            loops.append(Pass(inner=inner, stages=_with_scans(tuple(looped), stages), after=()))
    return tuple(p for p in loops if p.stages or p.after)


def _with_scans(looped: tuple[Stage, ...], stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    used = {e.attr for s in looped for e in ex.walk(*s.exprs) if e.op == "scan"}
    missing = [replace(s, writes=(None,)) for s in stages if s.name in used and s not in looped]
    return (*missing, *looped)


def staging_candidates(loops: tuple[Pass, ...]) -> tuple[Expr, ...]:
    """Costly element-wise values that two or more passes over the same axes need, largest first."""
    seen: dict[Expr, set[int]] = {}
    for place, loop in enumerate(loops):
        for expr in ex.walk(*(e for s in loop.stages for e in s.exprs)):
            if (
                loop.inner
                and expr.axes.keys() & set(loop.inner)
                and expr.dtype.floating
                and ex.is_costly(expr)
                and not _scans(expr)
            ):
                seen.setdefault(expr, set()).add(place)
    shared = [e for e, where in seen.items() if len(where) > 1 and len({loops[p].inner for p in where}) == 1]
    covered = {inner for e in shared for inner in ex.walk(e) if inner is not e}
    return tuple(e for e in shared if e not in covered)


def _scans(expr: Expr) -> bool:
    return any(e.op == "scan" for e in ex.walk(expr))
