"""C++ text of one arithmetic operation on single values (pure)."""

from __future__ import annotations

import math

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cuda.types import HALVES, MEMORY, SCALAR, read, written
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Unsupported

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "bitand": "&", "bitor": "|", "bitxor": "^",
         "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
         "logical_and": "&&", "logical_or": "||", "logical_xor": "!="}  # fmt: skip
PREFIX = {"neg": "-", "bitnot": "~", "logical_not": "!"}
FUNCTIONS = {"exp_nonpositive": "exp", "round": "rint", "abs": "fabs"} | {
    name: name
    for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "erf", "erfc", "tanh", "sigmoid", "sin",
                 "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sqrt", "rsqrt",
                 "floor", "ceil", "trunc", "pow", "atan2", "fmod")
}  # fmt: skip
INTEGER = {"floordiv": "ke_floordiv({0}, {1})", "truncdiv": "{0} / {1}", "fmod": "{0} % {1}",
           "pow": "ke_ipow({0}, {1})", "abs": "({0} < 0 ? -{0} : {0})"}  # fmt: skip
LARGEST = 3.4028235677973366e38
"""What rounds to more than float32 holds."""


def text(expr: Expr, args: list[str]) -> str:
    """``expr`` on operands.

    Raises:
        Unsupported: the operation has no form here.
    """
    op, dtype = expr.op, expr.dtype
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op in ("max", "min"):
        return f"ke_{op}({args[0]}, {args[1]})"
    if op == "cast":
        return f"{args[0]} != 0" if dtype is DType.BOOL else f"({SCALAR[dtype]}){args[0]}"
    if op == "round_to":
        return _rounded(expr, args[0])
    if op == "bounded":
        return f"ke_bounded({args[0]}, {expr.attr})"
    if not dtype.floating and op in INTEGER:
        return INTEGER[op].format(*args)
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op in PREFIX:
        return f"{PREFIX[op]}{args[0]}"
    if op in FUNCTIONS and dtype.floating:
        return f"ke_{FUNCTIONS[op]}({', '.join(args)})"
    raise Unsupported(op, f"has no form for {dtype} in CUDA and HIP")


def _rounded(expr: Expr, arg: str) -> str:
    """Through a narrower memory type and back."""
    memory = expr.attr
    assert isinstance(memory, DType)
    if memory in HALVES:
        return read(memory, written(memory, arg, expr.args[0].dtype), expr.dtype)
    return f"({SCALAR[expr.dtype]})({MEMORY[memory]}){arg}"


def literal(value: float, dtype: DType) -> str:
    """A constant that is exactly ``value`` rounded to ``dtype``."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if not dtype.floating:
        if dtype is not DType.I64:
            return str(int(value)) if value > -(2**31) else "(-2147483647 - 1)"
        return f"INT64_C({int(value)})" if value > -(2**63) else f"(-INT64_C({2**63 - 1}) - 1)"
    single = dtype is DType.F32
    if math.isnan(value):
        return '__builtin_nanf("")' if single else '__builtin_nan("")'
    if math.isinf(value) or (single and abs(value) >= LARGEST):
        return f"({'-' if value < 0 else ''}__builtin_huge_val{'f' if single else ''}())"
    shown = f"{float(value)!r}{'f' if single else ''}"
    return shown if value >= 0 and not shown.startswith("-") else f"({shown})"
