"""C text of one arithmetic operation on floats and on vectors of them (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared.dtypes import DType
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Unsupported

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
LOGICAL = {"logical_and": ("&&", "vmand"), "logical_or": ("||", "vmor"), "logical_xor": ("!=", "vmxor")}
REVERSED = {"sub": "vfrsub", "div": "vfrdiv"}
DIRECT = {"neg": "vfneg", "abs": "vfabs", "sqrt": "vfsqrt"}
"""One instruction each."""
LIBRARY = frozenset(["exp", "exp_nonpositive", "expm1", "sigmoid", "tanh", "erf", "log", "log1p", "rsqrt"]) | {
    "floor",
    "ceil",
    "trunc",
    "round",
}
"""Functions of ``vector_math.h``, on vectors and on single floats."""


@dataclass(frozen=True, slots=True)
class Operand:
    """C text of a vector, or of a scalar that is the same in all lanes."""

    text: str
    vector: bool


def literal(value: float, dtype: DType) -> str:
    """A C constant that is exactly ``value`` rounded to ``dtype``."""
    if dtype is DType.BOOL:
        return "1" if value else "0"
    if math.isnan(value):
        return '__builtin_nanf("")'
    if abs(value) > 3.4028235677973366e38:
        return "-__builtin_inff()" if value < 0 else "__builtin_inff()"
    text = repr(float(value))
    return f"{text}f"


def scalar(expr: Expr, args: list[str], used: set[tuple[str, int]]) -> str:
    """``expr`` on floats and truths. ``used`` collects functions of the library."""
    op = expr.op
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op in COMPARE:
        return f"{args[0]} {COMPARE[op]} {args[1]}"
    if op in LOGICAL:
        return f"{args[0]} {LOGICAL[op][0]} {args[1]}"
    if op == "logical_not":
        return f"!{args[0]}"
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op == "neg":
        return f"-{args[0]}"
    if op in ("abs", "sqrt"):
        return f"__builtin_f{op}f({args[0]})" if op == "abs" else f"__builtin_sqrtf({args[0]})"
    if op == "rsqrt":
        return f"1.0f / __builtin_sqrtf({args[0]})"
    if op == "cast":
        return f"{args[0]} != 0" if expr.dtype is DType.BOOL else f"(float){args[0]}"
    if op in LIBRARY or op in ("max", "min"):
        used.add((op, 0))
        return f"ke_{op}_s({', '.join(args)})"
    raise Unsupported(op, "has no form in C for the vector extension")


def vector(expr: Expr, args: list[Operand], vl: str, lmul: int, used: set[tuple[str, int]]) -> str:
    """``expr`` where at least one operand is a vector. Operands that must be vectors are (see ``spread``)."""
    op = expr.op
    texts = [a.text for a in args]
    if op in INFIX or op in COMPARE:
        return _two(op, args, vl)
    if op in LOGICAL:
        return f"__riscv_{LOGICAL[op][1]}({texts[0]}, {texts[1]}, {vl})"
    if op == "logical_not":
        return f"__riscv_vmnot({texts[0]}, {vl})"
    if op == "where":
        merge = "vmerge" if args[1].vector else "vfmerge"
        return f"__riscv_{merge}({texts[2]}, {texts[1]}, {texts[0]}, {vl})"
    if op in DIRECT:
        return f"__riscv_{DIRECT[op]}({texts[0]}, {vl})"
    if op == "cast":
        if expr.dtype is DType.BOOL:
            return f"__riscv_vmfne({texts[0]}, 0.0f, {vl})"
        return f"__riscv_vfmerge(__riscv_vfmv_v_f_f32m{lmul}(0.0f, {vl}), 1.0f, {texts[0]}, {vl})"
    if op in ("max", "min"):
        return _extreme(op, args, vl, lmul, used)
    if op in LIBRARY:
        used.add((op, lmul))
        return f"ke_{op}_m{lmul}({texts[0]}, {vl})"
    raise Unsupported(op, "has no form in C for the vector extension")


def spread(expr: Expr, varying: list[bool]) -> list[bool]:
    """Which operands must be vectors in every lane, though they are the same in all."""
    op = expr.op
    if op in LOGICAL:
        return [True, True]
    if op == "where":
        return [True, False, True]
    if op in INFIX or op in COMPARE or op in ("max", "min"):
        return [False, False]
    return [True] * len(varying)


def _two(op: str, args: list[Operand], vl: str) -> str:
    a, b = args
    if a.vector:
        name = f"vmf{op}" if op in COMPARE else f"vf{op}"
        return f"__riscv_{name}({a.text}, {b.text}, {vl})"
    if op in COMPARE:
        return f"__riscv_vmf{MIRRORED[op]}({b.text}, {a.text}, {vl})"
    return f"__riscv_{REVERSED.get(op, f'vf{op}')}({b.text}, {a.text}, {vl})"


def _extreme(op: str, args: list[Operand], vl: str, lmul: int, used: set[tuple[str, int]]) -> str:
    """Of two vectors, or of a vector and a scalar. A NaN in either comes through."""
    if args[0].vector and args[1].vector:
        used.add((op, lmul))
        return f"ke_{op}_m{lmul}({args[0].text}, {args[1].text}, {vl})"
    x, bound = (args[0], args[1]) if args[0].vector else (args[1], args[0])
    # A NaN among the lanes fails the comparison and stays; a NaN of the scalar's must replace every lane.
    keeps = "vmfge" if op == "max" else "vmfle"
    keep = f"__riscv_vmor(__riscv_{keeps}({x.text}, {bound.text}, {vl}), __riscv_vmfne({x.text}, {x.text}, {vl}), {vl})"
    if _finite_literal(bound.text):
        loses = "vmflt" if op == "max" else "vmfgt"
        return f"__riscv_vfmerge({x.text}, {bound.text}, __riscv_{loses}({x.text}, {bound.text}, {vl}), {vl})"
    return f"__riscv_vfmerge({x.text}, {bound.text}, __riscv_vmnot({keep}, {vl}), {vl})"


def _finite_literal(text: str) -> bool:
    return text.endswith("f") and text.lstrip("-")[:1].isdigit()
