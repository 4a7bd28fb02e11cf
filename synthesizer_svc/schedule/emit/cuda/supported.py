"""What is written in CUDA and HIP, and refusals by name of everything else (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.emit.cuda.folds import STRUCTS
from synthesizer_svc.schedule.emit.cuda.types import MEMORY, SCALAR
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.ir import Group, Plan

LANGUAGE = "CUDA and HIP"


def check(plan: Plan) -> None:
    """Refuse what would not be written, or written badly.

    Raises:
        Unsupported: naming the operation or the element type.
    """
    for buffer in plan.buffers:
        if buffer.dtype not in MEMORY:
            raise Unsupported(buffer.name, f"elements of {buffer.dtype} are not written in {LANGUAGE}")
    for group in plan.groups:
        _check_group(group)


def _check_group(group: Group) -> None:
    for stage in group.stages:
        if stage.contraction:
            raise Unsupported("contraction", f"products of matrices are not written in {LANGUAGE}: use Triton")
        if stage.kind == "scan":
            raise Unsupported(stage.op, f"scans are not written in {LANGUAGE}: use Triton")
        if stage.kind == "reduce" and stage.op not in (*STRUCTS, "softstats", "moments"):
            raise Unsupported(stage.op, f"this reduction is not written in {LANGUAGE}")
        for expr in ex.walk(*stage.exprs):
            if expr.dtype not in SCALAR and not (expr.op == "load" and expr.dtype in (DType.F16, DType.BF16)):
                raise Unsupported(expr.op, f"arithmetic on {expr.dtype} is not written in {LANGUAGE}")
