"""Arithmetic on expressions, with torch's meaning of each operation (pure)."""

from __future__ import annotations

from collections.abc import Callable

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Lazy, compute_type

_RANK = [
    DType.BOOL, DType.U8, DType.I8, DType.I16, DType.I32, DType.I64, DType.F16, DType.BF16, DType.F32, DType.F64,
]  # fmt: skip


def promoted(operands: list[Lazy]) -> DType:
    """The type a comparison is made in: tensors with dimensions outrank scalars of the same category."""

    def category(dtype: DType) -> int:
        return 2 if dtype.floating else 0 if dtype is DType.BOOL else 1

    top = max(category(x.dtype) for x in operands)
    for dimensioned in (True, False):
        found = [x.dtype for x in operands if bool(x.shape) is dimensioned and category(x.dtype) == top]
        if found:
            best = max(found, key=_RANK.index)
            return DType.F32 if best is DType.F64 and not dimensioned and any(x.shape for x in operands) else best
    raise AssertionError("a comparison has operands")


def like(value: float, x: Expr) -> Expr:
    return ex.const(value, x.dtype)


def _is(x: Expr, value: float) -> bool:
    return x.op == "const" and x.attr == value


def unary_op(name: str) -> Callable[[Expr], Expr]:
    def apply(x: Expr) -> Expr:
        if not x.dtype.floating and name in ("floor", "ceil", "trunc", "round"):
            return x
        return ex.make(name, x, dtype=x.dtype)

    return apply


def add(a: Expr, b: Expr) -> Expr:
    if a.dtype is DType.BOOL:
        return logical("logical_or", a, b)
    if a.dtype is DType.I64 and a.op in ("index", "const") and b.op in ("index", "const"):
        return ex.position(ex.as_index(a) + ex.as_index(b))
    return ex.make("add", a, b, dtype=a.dtype)


def sub(a: Expr, b: Expr) -> Expr:
    if a.dtype is DType.I64 and a.op in ("index", "const") and b.op in ("index", "const"):
        return ex.position(ex.as_index(a) + ex.as_index(b) * -1)
    return ex.make("sub", a, b, dtype=a.dtype)


def mul(a: Expr, b: Expr) -> Expr:
    if a.dtype is DType.BOOL:
        return logical("logical_and", a, b)
    if _is(b, 1):
        return a
    if _is(a, 1):
        return b
    if a.dtype is DType.I64 and a.op == "index" and b.op == "const":
        return ex.position(ex.as_index(a) * int(b.attr))
    return ex.make("mul", a, b, dtype=a.dtype)


def scaled(x: Expr, by: float) -> Expr:
    return x if by == 1 else mul(x, like(by, x))


def div(a: Expr, b: Expr) -> Expr:
    return a if _is(b, 1) else ex.make("div", a, b, dtype=a.dtype)


def floor_div(a: Expr, b: Expr) -> Expr:
    if a.dtype.floating:
        return div(sub(a, remainder(a, b)), b) if b.op != "const" else unary_op("floor")(div(a, b))
    return ex.make("floordiv", a, b, dtype=a.dtype)


def trunc_div(a: Expr, b: Expr) -> Expr:
    return unary_op("trunc")(div(a, b)) if a.dtype.floating else ex.make("truncdiv", a, b, dtype=a.dtype)


def fmod(a: Expr, b: Expr) -> Expr:
    """C's remainder: the sign of ``a``."""
    if a.op == "index" and b.op == "const" and isinstance(b.attr, int) and b.attr > 0:
        index = ex.as_index(a)
        if index.range()[0] >= 0:
            return ex.position(index % b.attr)
    return ex.make("fmod", a, b, dtype=a.dtype)


def remainder(a: Expr, b: Expr) -> Expr:
    """Python's remainder: the sign of ``b``."""
    rest = fmod(a, b)
    if rest.op == "index":
        return rest
    zero = like(0, rest)
    wrong = logical(
        "logical_and",
        compare("ne", rest, zero),
        logical("logical_xor", compare("lt", rest, zero), compare("lt", b, zero)),
    )
    return where(wrong, add(rest, b), rest)


def maximum(a: Expr, b: Expr) -> Expr:
    return logical("logical_or", a, b) if a.dtype is DType.BOOL else ex.make("max", a, b, dtype=a.dtype)


def minimum(a: Expr, b: Expr) -> Expr:
    return logical("logical_and", a, b) if a.dtype is DType.BOOL else ex.make("min", a, b, dtype=a.dtype)


def fmax(a: Expr, b: Expr) -> Expr:
    return where(isnan(a), b, where(isnan(b), a, maximum(a, b)))


def fmin(a: Expr, b: Expr) -> Expr:
    return where(isnan(a), b, where(isnan(b), a, minimum(a, b)))


def pow(a: Expr, b: Expr) -> Expr:  # noqa: A001  torch's name
    """Integer powers up to 4 and halves become multiplications and roots, the rest stays a power."""
    exponent = b.attr if b.op == "const" else None
    if exponent in (1, 1.0):
        return a
    if exponent == 2:
        return mul(a, a)
    if exponent == 3:
        return mul(mul(a, a), a)
    if exponent == 4:
        return mul(mul(a, a), mul(a, a))
    if exponent == 0 and exponent is not None:
        return like(1, a)
    if a.dtype.floating:
        if exponent == 0.5:
            return where(compare("eq", a, like(float("-inf"), a)), like(float("inf"), a), unary_op("sqrt")(a))
        if exponent == -1:
            return div(like(1, a), a)
        if exponent == -2:
            return div(like(1, a), mul(a, a))
    return ex.make("pow", a, b, dtype=a.dtype)


def atan2(a: Expr, b: Expr) -> Expr:
    return ex.make("atan2", a, b, dtype=a.dtype)


def compare(op: str, a: Expr, b: Expr) -> Expr:
    return ex.make(op, a, b, dtype=DType.BOOL)


def truth(x: Expr) -> Expr:
    return x if x.dtype is DType.BOOL else compare("ne", x, like(0, x))


def logical(op: str, a: Expr, b: Expr) -> Expr:
    return ex.make(op, a, b, dtype=DType.BOOL)


def of_truths(op: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: logical(op, truth(a), truth(b))


def logical_not(x: Expr) -> Expr:
    return ex.make("logical_not", truth(x), dtype=DType.BOOL)


def bitwise(op: str, a: Expr, b: Expr) -> Expr:
    return logical(f"logical_{op}", a, b) if a.dtype is DType.BOOL else ex.make(f"bit{op}", a, b, dtype=a.dtype)


def where(condition: Expr, a: Expr, b: Expr) -> Expr:
    if condition.op == "const":
        return a if condition.attr else b
    if a.dtype is DType.BOOL:
        return logical(
            "logical_or", logical("logical_and", condition, a), logical("logical_and", logical_not(condition), b)
        )
    return a if a is b else ex.make("where", condition, a, b, dtype=a.dtype)


def isnan(x: Expr) -> Expr:
    return compare("ne", x, x) if x.dtype.floating else ex.const(0, DType.BOOL)


def isinf(x: Expr) -> Expr:
    return compare("eq", unary_op("abs")(x), like(float("inf"), x)) if x.dtype.floating else ex.const(0, DType.BOOL)


def sign(x: Expr) -> Expr:
    if x.dtype is DType.BOOL:
        return x
    zero = like(0, x)
    return where(
        compare("gt", x, zero),
        like(1, x),
        where(compare("lt", x, zero), like(-1, x), mul(x, zero) if x.dtype.floating else zero),
    )


PREDICATES: dict[str, Callable[[Expr], Expr]] = {
    "isnan": isnan,
    "isinf": isinf,
    "logical_not": logical_not,
}


def gelu_erf(x: Expr) -> Expr:
    half = mul(x, like(0.5, x))
    return mul(half, add(like(1, x), unary_op("erf")(mul(x, like(0.7071067811865476, x)))))


def gelu_tanh(x: Expr) -> Expr:
    """``0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³)))`` (Hendrycks & Gimpel, arXiv:1606.08415)."""
    inner = mul(like(0.7978845608028654, x), add(x, mul(like(0.044715, x), mul(mul(x, x), x))))
    return mul(mul(like(0.5, x), x), add(like(1, x), unary_op("tanh")(inner)))


def to(x: Expr, dtype: DType) -> Expr:
    target = compute_type(dtype)
    return x if x.dtype is target else ex.make("cast", x, dtype=target)
