"""Accumulators of reductions and carries of scans: C++ text of their start, step, merge and fold (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cpp.types import SCALAR, Lanes
from synthesizer_svc.schedule.ir import Stage

_STEP = {
    "sum": "{a} += {x};",
    "prod": "{a} *= {x};",
    "max": "{a} = ke_vmax({a}, {x});",
    "min": "{a} = ke_vmin({a}, {x});",
    "max_raw": "{a} = ke_vmax_raw({a}, {x});",
    "any": "{a} |= {x};",
    "all": "{a} &= {x};",
}


def is_arg(stage: Stage) -> bool:
    return stage.op in ("argmax", "argmin")


def identity(stage: Stage) -> str:
    """The scalar that changes nothing, as C++."""
    dtype = stage.exprs[0].dtype
    kind = SCALAR[dtype]
    if stage.op == "sum":
        return f"({kind})0"
    if stage.op == "prod":
        return f"({kind})1"
    if stage.op in ("any", "all"):
        return "true" if stage.op == "all" else "false"
    lowest = stage.op in ("max", "max_raw", "argmax")
    if dtype.floating:
        return f"({kind}){'-' if lowest else ''}INFINITY"
    return f"std::numeric_limits<{kind}>::{'lowest' if lowest else 'max'}()"


def declare(stage: Stage, name: str, lanes: Lanes) -> list[str]:
    kind = lanes.vector(stage.exprs[0].dtype)
    spread = f"ke_splat_mask<{kind}>" if stage.exprs[0].dtype is DType.BOOL else f"ke_splat<{kind}>"
    lines = [f"{kind} {name} = {spread}({identity(stage)});"]
    if is_arg(stage):
        at = lanes.vector(DType.I64)
        lines.append(f"{at} {name}_at = ke_splat<{at}>(-1);")
    return lines


def step(stage: Stage, name: str, x: str, position: str, part: int | None, lanes: Lanes) -> str:
    """Fold vector ``x`` in; ``part``: only that many leading lanes count."""
    kind = lanes.vector(stage.exprs[0].dtype)
    if is_arg(stage):
        at = lanes.vector(DType.I64)
        valid = f"ke_first<{at}>({part})" if part is not None else f"ke_splat<{at}>(-1)"
        return f"ke_arg<{'true' if stage.op == 'argmax' else 'false'}>({name}, {name}_at, {x}, {position}, {valid});"
    if part is not None:
        boolean = stage.exprs[0].dtype is DType.BOOL
        rest = f"{'ke_splat_mask' if boolean else 'ke_splat'}<{kind}>({identity(stage)})"
        x = f"ke_pick(ke_first<{lanes.mask_for(stage.exprs[0].dtype)}>({part}), {x}, {rest})"
    return _STEP[stage.op].format(a=name, x=x)


def merge(stage: Stage, into: str, other: str) -> str:
    """Two accumulators into one; arg-reductions merge when they fold."""
    return _STEP[stage.op].format(a=into, x=other)


def fold(stage: Stage, names: list[str]) -> tuple[list[str], str]:
    """Statements and the scalar expression that folds accumulators over their lanes."""
    if is_arg(stage):
        flag = "true" if stage.op == "argmax" else "false"
        lines = [f"ke_arg<{flag}>({names[0]}, {names[0]}_at, {n}, {n}_at);" for n in names[1:]]
        return lines, f"ke_fold_arg<{flag}>({names[0]}, {names[0]}_at)"
    lines = []
    while len(names) > 1:  # pairwise
        half = (len(names) + 1) // 2
        lines.extend(merge(stage, names[i], names[half + i]) for i in range(len(names) - half))
        names = names[:half]
    return lines, f"ke_fold_{stage.op}({names[0]})"


def carry_type(stage: Stage, lanes: Lanes, *, along_lanes: bool, serial: bool) -> str:
    """Type of a scan's running value: float32 is accumulated in float64, as torch does on a CPU."""
    dtype = stage.exprs[0].dtype
    wide = DType.F64 if dtype is DType.F32 else dtype
    if not along_lanes:
        return lanes.vector(wide)
    if serial or not dtype.floating:
        return SCALAR[wide]
    return "vd"
