"""Accumulators of reductions: C text of their start, step and fold (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule.emit.rvv.ops import literal
from synthesizer_svc.schedule.ir import Stage

IDENTITY = {"sum": 0.0, "prod": 1.0, "max": float("-inf"), "max_raw": float("-inf"), "min": float("inf")}
_PLAIN = {"sum": "vfadd", "prod": "vfmul", "max_raw": "vfmax"}
_KEEPS = {"max": "vmfge", "min": "vmfle"}


def identity(stage: Stage) -> str:
    """The constant that changes nothing."""
    return literal(IDENTITY[stage.op], stage.dtype)


def step(op: str, into: str, x: str, vl: str, *, undisturbed: bool) -> str:
    """Fold vector ``x`` in. ``undisturbed``: lanes beyond ``vl`` stay as they are."""
    kept, first = ("_tu", f"{into}, ") if undisturbed else ("", "")
    if op in _PLAIN:
        return f"{into} = __riscv_{_PLAIN[op]}{kept}({first}{into}, {x}, {vl});"
    # A NaN compares false and replaces; one that is there already stays.
    keep = f"__riscv_vmor(__riscv_{_KEEPS[op]}({into}, {x}, {vl}), __riscv_vmfne({into}, {into}, {vl}), {vl})"
    return f"{into} = __riscv_vmerge{kept}({first}{x}, {into}, {keep}, {vl});"


def multiply_add(into: str, x: str, y: str, vl: str, *, undisturbed: bool) -> str:
    """A product folded into a sum; ``x`` may be a scalar."""
    return f"{into} = __riscv_vfmacc{'_tu' if undisturbed else ''}({into}, {x}, {y}, {vl});"


def merged(op: str, names: list[str], vl: str) -> list[str]:
    """Statements that leave the fold of all accumulators in the first, pairwise."""
    lines: list[str] = []
    while len(names) > 1:
        half = (len(names) + 1) // 2
        lines += [step(op, names[i], names[half + i], vl, undisturbed=False) for i in range(len(names) - half)]
        names = names[:half]
    return lines
