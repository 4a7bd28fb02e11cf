"""Pointwise calls: arithmetic, comparisons, activations, casts (pure)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.registry import LOWERINGS, CallContext, cast, lowers


def broadcast(x: Lazy, indices: Indices) -> Expr:
    """``x`` at ``indices`` of a shape it broadcasts to."""
    mine = indices[len(indices) - len(x.shape) :]
    return x.at(tuple(ix.constant(0) if extent == 1 else i for extent, i in zip(x.shape, mine, strict=True)))


def pointwise(c: CallContext, names: tuple[str, ...], compute: Callable[..., Expr], *, compare: bool = False) -> Lazy:
    """A lazy result of ``compute`` on the broadcast operands, in the result's type (or, to compare, a common one)."""
    operands = [c.operand(name) for name in names]
    out = c.out()
    work = ar.promoted(operands) if compare else out.dtype
    if not compare and out.dtype is not DType.BOOL and not out.dtype.floating and out.dtype.itemsize < 4:
        raise c.builder.refuse(f"arithmetic on {out.dtype} is not supported")

    def at(indices: Indices) -> Expr:
        return compute(*(cast(broadcast(x, indices), work) for x in operands))

    return Lazy(out.shape, out.dtype, at)


def unary(name: str, compute: Callable[[Expr], Expr]) -> None:
    LOWERINGS[f"{name}.default"] = lambda c: pointwise(c, ("self",) if c.has("self") else ("a",), compute)


def binary(name: str, compute: Callable[[Expr, Expr], Expr], *, compare: bool = False) -> None:
    for overload in ("Tensor", "Scalar", "default", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"):
        LOWERINGS[f"{name}.{overload}"] = lambda c: pointwise(c, _pair(c), compute, compare=compare)


def _pair(c: CallContext) -> tuple[str, str]:
    names = [name for name, _ in c.call.arguments]
    return names[0], names[1]


UNARY = (
    "exp exp2 expm1 log log2 log10 log1p erf erfc tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh "
    "sqrt rsqrt sigmoid floor ceil trunc neg abs round"
)
for _name in UNARY.split():
    unary(_name, ar.unary_op(_name))
unary("reciprocal", lambda x: ar.div(ar.like(1, x), x))
unary("relu", lambda x: ar.where(ar.compare("le", x, ar.like(0, x)), ar.like(0, x), x))
unary("sign", ar.sign)
unary("sgn", ar.sign)
unary("square", lambda x: ar.mul(x, x))
unary("bitwise_not", lambda x: ar.logical_not(x) if x.dtype is DType.BOOL else ex.make("bitnot", x, dtype=x.dtype))
unary("silu", lambda x: ar.mul(x, ar.unary_op("sigmoid")(x)))
unary("clone", lambda x: x)
unary("alias", lambda x: x)
unary("detach", lambda x: x)
unary("lift_fresh_copy", lambda x: x)
unary("positive", lambda x: x)
unary("deg2rad", lambda x: ar.mul(x, ar.like(0.017453292519943295, x)))

for _name in ("mul", "maximum", "minimum", "pow", "atan2", "remainder", "fmod", "fmax", "fmin"):
    binary(_name, getattr(ar, _name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    binary(_name, partial(ar.compare, _name), compare=True)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, ar.of_truths(_name), compare=True)
for _name in ("and", "or", "xor"):
    binary(f"bitwise_{_name}", partial(ar.bitwise, _name))


@lowers("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar", "rsub.Tensor")
def lower_add(c: CallContext) -> Lazy:
    alpha = c.raw("alpha")
    alpha = 1 if alpha is None else alpha
    op = ar.add if ".add" in c.call.op else ar.sub

    def compute(a: Expr, b: Expr) -> Expr:
        if "rsub" in c.call.op:
            a, b = b, a
        return op(a, b if alpha == 1 else ar.mul(b, ar.like(alpha, b)))  # type: ignore[arg-type]

    return pointwise(c, _pair(c), compute)


@lowers("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode")
def lower_div(c: CallContext) -> Lazy:
    mode = c.raw("rounding_mode")
    if mode is None:
        return pointwise(c, _pair(c), ar.div)
    return pointwise(c, _pair(c), ar.floor_div if mode == "floor" else ar.trunc_div)


binary("floor_divide", ar.floor_div)


@lowers("isnan.default", "isinf.default", "logical_not.default")
def lower_predicate(c: CallContext) -> Lazy:
    name = c.call.op.split(".")[1]
    return pointwise(c, ("self",) if c.has("self") else ("a",), ar.PREDICATES[name], compare=True)


@lowers("where.self", "where.default", "where.ScalarOther", "where.ScalarSelf")
def lower_where(c: CallContext) -> Lazy:
    names = [name for name, _ in c.call.arguments]
    condition, a, b = (c.operand(name) for name in names[:3])
    out = c.out()

    def at(i: Indices) -> Expr:
        return ar.where(
            ar.truth(broadcast(condition, i)), cast(broadcast(a, i), out.dtype), cast(broadcast(b, i), out.dtype)
        )

    return Lazy(out.shape, out.dtype, at)


@lowers("clamp.default", "clamp.Tensor", "hardtanh.default", "clamp_min.default", "clamp_max.default", "clip.default")
def lower_clamp(c: CallContext) -> Lazy:
    low, high = ("min_val", "max_val") if c.has("min_val") else ("min", "max")
    names = ["self", *(n for n in (low, high) if c.raw(n) is not None)]
    has_low, has_high = c.raw(low) is not None, c.raw(high) is not None

    def compute(x: Expr, *bounds: Expr) -> Expr:
        x = ar.maximum(x, bounds[0]) if has_low else x
        return ar.minimum(x, bounds[-1]) if has_high else x

    return pointwise(c, tuple(names), compute)


@lowers("_to_copy.default", "convert_element_type.default", "to.dtype")
def lower_cast(c: CallContext) -> Lazy:
    x, out = c.operand("self" if c.has("self") else "a"), c.out()
    narrow = out.dtype in (DType.F16, DType.BF16) and x.dtype is not out.dtype
    small = out.dtype in (DType.I8, DType.I16, DType.U8) and x.dtype is not out.dtype

    def at(indices: Indices) -> Expr:
        value = cast(x.at(indices), out.dtype)
        return ex.make("round_to", value, attr=out.dtype, dtype=value.dtype) if narrow or small else value

    return Lazy(out.shape, out.dtype, at)


@lowers("gelu.default")
def lower_gelu(c: CallContext) -> Lazy:
    return pointwise(c, ("self",), ar.gelu_tanh if c.raw("approximate") == "tanh" else ar.gelu_erf)


@lowers("leaky_relu.default")
def lower_leaky_relu(c: CallContext) -> Lazy:
    slope = c.number("negative_slope")
    return pointwise(
        c, ("self",), lambda x: ar.where(ar.compare("gt", x, ar.like(0, x)), x, ar.mul(x, ar.like(slope, x)))
    )


@lowers("elu.default")
def lower_elu(c: CallContext) -> Lazy:
    alpha, scale, input_scale = (c.number(n) for n in ("alpha", "scale", "input_scale"))

    def compute(x: Expr) -> Expr:
        negative = ar.mul(ar.unary_op("expm1")(ar.scaled(x, input_scale)), ar.like(alpha * scale, x))
        return ar.where(ar.compare("gt", x, ar.like(0, x)), ar.scaled(x, scale), negative)

    return pointwise(c, ("self",), compute)


@lowers("prelu.default", "_prelu_kernel.default")
def lower_prelu(c: CallContext) -> Lazy:
    return pointwise(c, ("self", "weight"), lambda x, w: ar.where(ar.compare("gt", x, ar.like(0, x)), x, ar.mul(w, x)))
