"""Folds of rows: the accumulator of each reduction, where it begins, and what it gives (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cuda import ops
from synthesizer_svc.schedule.emit.cuda.types import SCALAR
from synthesizer_svc.schedule.ir import Stage

STRUCTS = {"sum": "KeSum", "prod": "KeProd", "max": "KeMax", "min": "KeMin", "max_raw": "KeTop", "any": "KeAny",
           "all": "KeAll", "argmax": "KeArg", "argmin": "KeArg", "softstats": "KeSoft"}  # fmt: skip
LOWEST = {DType.F32: "-3.4028234663852886e+38f", DType.F64: "-1.7976931348623157e+308"}


def is_arg(stage: Stage) -> bool:
    return stage.op in ("argmax", "argmin")


def accumulator(stage: Stage) -> str:
    """Its C++ type."""
    kind = SCALAR[stage.exprs[0].dtype]
    more = f", {'true' if stage.op == 'argmax' else 'false'}" if is_arg(stage) else ""
    return f"{STRUCTS[stage.op]}<{kind}{more}>"


def accumulator_bytes(stage: Stage) -> int:
    """At most, of what one thread or warp holds of a stage; of both parts where it is folded in two."""
    if is_arg(stage):
        return 16
    return stage.exprs[0].dtype.itemsize * (2 if stage.op in ("softstats", "moments") else 1)


def start(stage: Stage) -> str:
    """What it holds before the first element."""
    if stage.op == "softstats":
        return f"{{{LOWEST[stage.exprs[0].dtype]}, 0}}"
    if stage.op == "max_raw":  # finite, so that what is taken from it is: a part of a row may be nothing but -inf
        return f"{{{LOWEST[stage.exprs[0].dtype]}}}"
    return f"{{{_neutral(stage)}, -1}}" if is_arg(stage) else f"{{{_neutral(stage)}}}"


def results(stage: Stage, name: str) -> tuple[str, ...]:
    """Texts of its components. The sum of exponentials is NaN where the maximum is infinite, as it is in torch."""
    if stage.op == "softstats":
        return f"{name}.top", f"{name}.sum * ke_exp({name}.top - {name}.top)"
    return (f"{name}.at",) if is_arg(stage) else (f"{name}.v",)


def _neutral(stage: Stage) -> str:
    dtype = stage.exprs[0].dtype
    if stage.op in ("sum", "prod"):
        return ops.literal(0 if stage.op == "sum" else 1, dtype)
    if stage.op in ("any", "all"):
        return ops.literal(int(stage.op == "all"), dtype)
    lowest = stage.op in ("max", "max_raw", "argmax")
    if dtype.floating:
        return ops.literal(float("-inf") if lowest else float("inf"), dtype)
    if dtype is DType.BOOL:
        return ops.literal(int(not lowest), dtype)
    bits = 8 * dtype.itemsize - 1
    return ops.literal(-(1 << bits) if lowest else (1 << bits) - 1, dtype)
