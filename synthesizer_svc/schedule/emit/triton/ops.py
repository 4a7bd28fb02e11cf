"""Triton text of one arithmetic operation; operands are tensors, scalars or literals (pure)."""

from __future__ import annotations

import math
import struct

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.triton.types import TL
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Unsupported

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "bitand": "&", "bitor": "|", "bitxor": "^",
         "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
         "logical_and": "&", "logical_or": "|", "logical_xor": "^"}  # fmt: skip
LANGUAGE = {"exp": "exp", "exp_nonpositive": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "erf": "erf",
            "sigmoid": "sigmoid", "sin": "sin", "cos": "cos", "sqrt": "sqrt", "rsqrt": "rsqrt", "floor": "floor",
            "ceil": "ceil", "abs": "abs"}  # fmt: skip
LIBDEVICE = {"expm1": "expm1", "log1p": "log1p", "log10": "log10", "tanh": "tanh", "erfc": "erfc", "tan": "tan",
             "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh",
             "acosh": "acosh", "atanh": "atanh", "trunc": "trunc", "round": "rint", "pow": "pow", "atan2": "atan2",
             "fmod": "fmod"}  # fmt: skip
OF_TENSORS = frozenset({*LANGUAGE, *LIBDEVICE})
"""Functions that take no literals."""
NAN = 'float("nan")'
PROPAGATE = "propagate_nan=tl.PropagateNan.ALL"
FLOAT32_BEYOND = 2.0**127
"""Below that no rounding to float32 overflows."""


def text(expr: Expr, args: list[str]) -> str:
    """``expr`` on operands.

    Raises:
        Unsupported: the operation has no form in Triton.
    """
    op, dtype = expr.op, expr.dtype
    if op == "where":
        return f"tl.where({', '.join(args)})"
    if op == "neg":
        return f"-{args[0]}"
    if op in ("logical_not", "bitnot"):
        return f"~{args[0]}"
    if op in ("max", "min"):
        return extremum(op, dtype, *args)
    if op == "cast":
        return f"{args[0]} != 0" if dtype is DType.BOOL else f"{args[0]}.to({TL[dtype]})"
    if op == "round_to":
        return f"{args[0]}.to({TL[expr.attr]}).to({TL[dtype]})"
    if op == "bounded":
        return f"tl.minimum(tl.maximum({args[0]}, 0), {expr.attr - 1})"
    if not dtype.floating and op in ("floordiv", "truncdiv", "fmod", "pow"):
        return integer(op, args)
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op in LANGUAGE:
        return f"tl.{LANGUAGE[op]}({args[0]})"
    if op in LIBDEVICE:
        return f"libdevice.{LIBDEVICE[op]}({', '.join(args)})"
    raise Unsupported(op, "has no form in Triton")


def extremum(op: str, dtype: DType, a: str, b: str) -> str:
    """A maximum or minimum in which NaN wins, as in torch."""
    if dtype is DType.BOOL:
        return f"{a} {'|' if op == 'max' else '&'} {b}"
    suffix = f", {PROPAGATE}" if dtype.floating else ""
    return f"tl.{'maximum' if op == 'max' else 'minimum'}({a}, {b}{suffix})"


def integer(op: str, args: list[str]) -> str:
    """Division rounds toward zero in Triton and its remainder has the sign of the dividend."""
    a, b = args
    if op == "truncdiv":
        return f"{a} // {b}"
    if op == "fmod":
        return f"{a} % {b}"
    if op == "floordiv":
        return f"{a} // {b} - ((({a}) % ({b}) != 0) & ((({a}) < 0) != (({b}) < 0)))"
    raise Unsupported(op, "has no form for integers in Triton")


def literal(value: float, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "True" if value else "False"
    if not dtype.floating:
        return str(int(value)) if value >= 0 else f"({int(value)})"
    number = float(value)
    if math.isnan(number):
        return NAN
    if number in (float("inf"), float("-inf")):
        return f'float("{"-" if number < 0 else ""}inf")'
    if dtype is DType.F64 and not _single(number):
        return f"tl.full([], {number!r}, {TL[dtype]})"
    return repr(number) if number >= 0 and not repr(number).startswith("-") else f"({number!r})"


def _single(number: float) -> bool:
    """Whether float32, which Triton takes a literal for beside a tensor of any type, holds ``number`` exactly."""
    return abs(number) < FLOAT32_BEYOND and struct.unpack("f", struct.pack("f", number))[0] == number
