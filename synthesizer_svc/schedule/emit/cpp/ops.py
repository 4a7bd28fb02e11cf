"""C++ text of one arithmetic operation on scalars and on vectors (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule.emit.cpp.types import SCALAR, Lanes
from synthesizer_svc.schedule.expr import Expr

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "bitand": "&", "bitor": "|", "bitxor": "^"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
LOGICAL = {"logical_and": ("&&", "&"), "logical_or": ("||", "|"), "logical_xor": ("!=", "^")}
"""On scalars and on masks."""
VECMATH = frozenset(
    [
        "exp",
        "exp_nonpositive",
        "expm1",
        "log",
        "log2",
        "log1p",
        "tanh",
        "sigmoid",
        "erf",
        "erfc",
        "sin",
        "cos",
        "sqrt",
        "rsqrt",
        "floor",
        "ceil",
        "trunc",
        "round",
        "abs",
        "pow",
    ]
)
STD = {
    "exp2": "std::exp2",
    "log10": "std::log10",
    "tan": "std::tan",
    "asin": "std::asin",
    "acos": "std::acos",
    "atan": "std::atan",
    "sinh": "std::sinh",
    "cosh": "std::cosh",
    "asinh": "std::asinh",
    "acosh": "std::acosh",
    "atanh": "std::atanh",
    "atan2": "std::atan2",
    "fmod": "std::fmod",
}


def scalar(expr: Expr, args: list[str]) -> str:
    """``expr`` on scalar operands of the C++ types of its arguments."""
    op, dtype = expr.op, expr.dtype
    if op in COMPARE:
        return f"{args[0]} {COMPARE[op]} {args[1]}"
    if op == "logical_not":
        return f"!{args[0]}"
    if op.startswith("logical_"):
        return f"{args[0]} {LOGICAL[op][0]} {args[1]}"
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op == "neg":
        return f"-{args[0]}"
    if op == "bitnot":
        return f"~{args[0]}"
    if op in ("max", "min"):
        return f"ke_{op}({args[0]}, {args[1]})" if dtype.floating else f"ke_{op}2({args[0]}, {args[1]})"
    if op == "cast":
        return f"{args[0]} != 0" if dtype is DType.BOOL else f"({SCALAR[dtype]}){args[0]}"
    if op == "bounded":
        return f"ke_bounded({args[0]}, {expr.attr})"
    if op == "round_to":
        return rounded(expr, args[0])
    if not dtype.floating and op in ("floordiv", "truncdiv", "fmod", "pow", "abs"):
        return integer(op, args)
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    name = f"ke_{op}" if op in VECMATH else STD[op]
    return f"{name}({', '.join(args)})"


def integer(op: str, args: list[str]) -> str:
    if op == "floordiv":
        return f"ke_floordiv({args[0]}, {args[1]})"
    if op == "truncdiv":
        return f"{args[0]} / {args[1]}"
    if op == "fmod":
        return f"{args[0]} % {args[1]}"
    if op == "pow":
        return f"ke_ipow({args[0]}, {args[1]})"
    return f"({args[0]} < 0 ? -{args[0]} : {args[0]})"


def rounded(expr: Expr, arg: str) -> str:
    """Through a narrower memory type and back."""
    kind = expr.attr
    if kind is DType.F16:
        return f"ke_f16_to_f32(ke_f32_to_f16({arg}))"
    if kind is DType.BF16:
        return f"ke_bf16_to_f32(ke_f32_to_bf16({arg}))"
    assert isinstance(kind, DType)
    return f"({SCALAR[expr.dtype]})({kind.c_type}){arg}"


def vector(expr: Expr, args: list[str], lanes: Lanes) -> str | None:
    """``expr`` on vector operands; None when only its scalar form exists."""
    op, dtype = expr.op, expr.dtype
    if op in COMPARE:
        text = f"({args[0]} {COMPARE[op]} {args[1]})"
        operand = expr.args[0].dtype
        if operand is DType.BOOL or lanes.mask_for(operand) == lanes.vector(DType.BOOL):
            return text
        return f"ke_cast<{lanes.vector(DType.BOOL)}>{text}"
    if op == "logical_not":
        return f"~{args[0]}"
    if op.startswith("logical_"):
        return f"{args[0]} {LOGICAL[op][1]} {args[1]}"
    if op == "where":
        mask = lanes.mask_for(dtype)
        picked = args[0] if mask == lanes.vector(DType.BOOL) else f"ke_cast<{mask}>({args[0]})"
        return f"ke_pick({picked}, {args[1]}, {args[2]})"
    if op == "neg":
        return f"-{args[0]}"
    if op == "bitnot":
        return f"~{args[0]}"
    if op == "cast":
        return conversion(expr.args[0].dtype, dtype, args[0], lanes)
    if op in INFIX and not (op == "div" and not dtype.floating):
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op in ("max", "min") and not dtype.floating:
        return f"ke_pick({args[0]} {'>' if op == 'max' else '<'} {args[1]}, {args[0]}, {args[1]})"
    if lanes.native(dtype) and (op in VECMATH or op in ("max", "min")):
        return f"ke_{op}({', '.join(args)})"
    return None


def conversion(source: DType, target: DType, arg: str, lanes: Lanes) -> str:
    if target is DType.BOOL:
        text = f"({arg} != 0)"
        same = lanes.mask_for(source) == lanes.vector(DType.BOOL)
        return text if same else f"ke_cast<{lanes.vector(DType.BOOL)}>{text}"
    if source is DType.BOOL:
        return f"ke_cast<{lanes.vector(target)}>({arg} & 1)"
    return f"ke_cast<{lanes.vector(target)}>({arg})"


def literal(value: float, dtype: DType) -> str:
    """A C++ literal that is exactly ``value`` rounded to ``dtype``."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if not dtype.floating:
        return (
            f"INT64_C({value})"
            if dtype is DType.I64 and value > -(2**63)
            else f"(-INT64_C({2**63 - 1}) - 1)"
            if dtype is DType.I64
            else str(value)
        )
    kind = "float" if dtype is DType.F32 else "double"
    if value != value:  # noqa: PLR0124
        return f"(({kind})NAN)"
    if abs(value) == float("inf") or (dtype is DType.F32 and abs(value) > 3.5e38):
        return f"(({kind}){'-' if value < 0 else ''}INFINITY)"
    text = repr(float(value))
    return f"{text}f" if dtype is DType.F32 else text
