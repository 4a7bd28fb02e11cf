"""What is written for the vector extension, and refusals by name of everything else (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.rvv import ops
from synthesizer_svc.schedule.emit.rvv.reduce import IDENTITY
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.ir import Group, Plan, Stage
from synthesizer_svc.schedule.lazy import Buffer

MEMORY = {DType.F32: "float", DType.BOOL: "uint8_t"}
OTHERS = frozenset(["logical_not", "where", "cast", "max", "min", "const", "load", "row"])
OPERATIONS = OTHERS.union(ops.INFIX, ops.COMPARE, ops.LOGICAL, ops.DIRECT, ops.LIBRARY)
LANGUAGE = "C for the vector extension"


def memory_type(buffer: Buffer) -> str:
    """C type of the elements.

    Raises:
        Unsupported: it has none here.
    """
    if buffer.dtype not in MEMORY:
        raise Unsupported(buffer.name, f"elements of {buffer.dtype} are not written in {LANGUAGE}")
    return MEMORY[buffer.dtype]


def check(plan: Plan, group: Group, stages: tuple[Stage, ...]) -> None:
    """Refuse what would be written wrongly.

    Raises:
        Unsupported: naming the operation or the element type.
    """
    for load in group.loads():
        memory_type(plan.buffer(load.attr[0]))
    for stage in stages:
        for write in stage.writes:
            if write is not None:
                memory_type(plan.buffer(write.buffer))
        if stage.kind == "scan":
            raise Unsupported(stage.op, f"scans are not written in {LANGUAGE}")
        if stage.kind == "reduce" and (stage.op not in {*IDENTITY, "softstats"} or stage.dtype is not DType.F32):
            raise Unsupported(stage.op, f"this reduction of {stage.dtype} is not written in {LANGUAGE}")
        for expr in ex.walk(*stage.exprs):
            _check_expression(expr)


def _check_expression(expr: ex.Expr) -> None:
    if expr.op not in OPERATIONS:
        raise Unsupported(expr.op, f"has no form in {LANGUAGE}")
    if expr.dtype not in MEMORY or any(a.dtype not in MEMORY for a in expr.args):
        raise Unsupported(expr.op, f"arithmetic on {expr.dtype} is not written in {LANGUAGE}")
    if any(isinstance(t, ix.Indirect) for index in ex.indices_of(expr) for t in index.walk()):
        raise Unsupported("index", f"positions read from memory are not written in {LANGUAGE}")
