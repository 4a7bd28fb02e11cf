"""Reductions of truths as maxima of floats, which vectors have in one instruction (pure)."""

from __future__ import annotations

from dataclasses import replace

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.ir import Stage


def without_truths(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """``any`` is a maximum of zeros and ones that is above 0, ``all`` that none fails."""
    return tuple(part for stage in stages for part in _written(stage))


def _written(stage: Stage) -> tuple[Stage, ...]:
    if stage.kind != "reduce" or stage.op not in ("any", "all"):
        return (stage,)
    truth = stage.exprs[0]
    if stage.op == "all":
        truth = ex.make("logical_not", truth, dtype=DType.BOOL)
    most, zero = f"{stage.name}_most", ex.const(0.0, DType.F32)
    found = ex.make("row", attr=(most, 0), dtype=DType.F32)
    told = ex.make("gt" if stage.op == "any" else "eq", found, zero, dtype=DType.BOOL)
    as_float = ex.make("cast", truth, dtype=DType.F32)
    return (
        replace(stage, name=most, op="max_raw", exprs=(as_float,), dtype=DType.F32, writes=(None,)),
        replace(stage, kind="value", op="store", inner=(), exprs=(told,)),
    )
