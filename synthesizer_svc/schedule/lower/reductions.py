"""Reductions over any dimensions (pure)."""

from __future__ import annotations

from collections.abc import Callable

from shared.dtypes import DType
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.registry import CallContext, cast, lowers
from synthesizer_svc.schedule.lower.views import view


def dims_of(c: CallContext, x: Lazy, name: str = "dim") -> tuple[int, ...]:
    """Dimensions named by ``dim`` (absent, None or empty: all), in ascending order."""
    raw = c.raw(name)
    rank = len(x.shape)
    if raw is None or raw == () or rank == 0:
        return tuple(range(rank))
    return tuple(sorted({d % rank for d in c.integers(name)}))


def mapped(x: Lazy, dtype: DType, compute: Callable[[Expr], Expr]) -> Lazy:
    """``compute`` of every element."""
    return Lazy(x.shape, dtype, lambda i: compute(x.at(i)))


def to_type(x: Lazy, dtype: DType) -> Lazy:
    return x if x.dtype is dtype else mapped(x, dtype, lambda e: cast(e, dtype))


def combined(shape: tuple[int, ...], dtype: DType, compute: Callable[..., Expr], *operands: Lazy) -> Lazy:
    """``compute`` of tensors of one shape."""
    return Lazy(shape, dtype, lambda i: compute(*(x.at(i) for x in operands)))


def keepdims(x: Lazy, full: tuple[int, ...], dims: tuple[int, ...]) -> Lazy:
    """A reduced tensor with the dimensions it lost, as extent 1."""
    kept = tuple(d for d in range(len(full)) if d not in dims)
    shape = tuple(1 if d in dims else e for d, e in enumerate(full))

    def at(indices: Indices) -> Expr:
        return x.at(tuple(indices[d] for d in kept))

    return Lazy(shape, x.dtype, at, plain=x.plain)


def count(x: Lazy, dims: tuple[int, ...]) -> int:
    total = 1
    for d in dims:
        total *= x.shape[d]
    return total


def _finish(c: CallContext, result: Lazy) -> Lazy:
    return view(result, c.out().shape)


@lowers("sum.dim_IntList", "sum.default")
def lower_sum(c: CallContext) -> Lazy:
    x = to_type(c.tensor("self"), c.out().dtype)
    return _finish(c, c.builder.reduce("sum", x, dims_of(c, x), c.out().dtype)[0])


@lowers("mean.dim", "mean.default")
def lower_mean(c: CallContext) -> Lazy:
    x = to_type(c.tensor("self"), c.out().dtype)
    dims = dims_of(c, x)
    total = c.builder.reduce("sum", x, dims, _wide(x.dtype))[0]
    return _finish(c, mapped(total, x.dtype, lambda e: ar.div(e, ar.like(count(x, dims), e))))


def _wide(dtype: DType) -> DType:
    """Results of reductions that more arithmetic follows stay unrounded."""
    return DType.F32 if dtype in (DType.F16, DType.BF16) else dtype


@lowers("amax.default", "amin.default")
def lower_extremum(c: CallContext) -> Lazy:
    x = c.tensor("self")
    op = "max" if "amax" in c.call.op else "min"
    return _finish(c, c.builder.reduce(op, x, dims_of(c, x), x.dtype)[0])


@lowers("max.default", "min.default")
def lower_extremum_of_all(c: CallContext) -> Lazy:
    x = c.tensor("self")
    op = "max" if ".max." in c.call.op else "min"
    return _finish(c, c.builder.reduce(op, x, tuple(range(len(x.shape))), x.dtype)[0])


@lowers("max.dim", "min.dim")
def lower_extremum_with_index(c: CallContext) -> tuple[Lazy, Lazy]:
    x = c.tensor("self")
    op = "max" if ".max." in c.call.op else "min"
    dims = dims_of(c, x)
    values = c.builder.reduce(op, x, dims, x.dtype)[0]
    indices = c.builder.reduce(f"arg{op}", x, dims, DType.I64)[0]
    return view(values, c.out(0).shape), view(indices, c.out(1).shape)


@lowers("argmax.default", "argmin.default")
def lower_arg_extremum(c: CallContext) -> Lazy:
    x = c.tensor("self")
    op = "argmax" if "argmax" in c.call.op else "argmin"
    return _finish(c, c.builder.reduce(op, x, dims_of(c, x), DType.I64)[0])


@lowers("prod.dim_int", "prod.default")
def lower_prod(c: CallContext) -> Lazy:
    x = to_type(c.tensor("self"), c.out().dtype)
    return _finish(c, c.builder.reduce("prod", x, dims_of(c, x), c.out().dtype)[0])


@lowers("any.dim", "any.dims", "any.default", "all.dim", "all.dims", "all.default")
def lower_quantifier(c: CallContext) -> Lazy:
    x = mapped(c.tensor("self"), DType.BOOL, ar.truth)
    op = "any" if ".any." in c.call.op else "all"
    return _finish(c, c.builder.reduce(op, x, dims_of(c, x), DType.BOOL)[0])


@lowers("var.correction", "var.dim", "var.default")
def lower_var(c: CallContext) -> Lazy:
    x = c.tensor("self")
    dims = dims_of(c, x)
    _, squares = c.builder.reduce("moments", x, dims, _wide(x.dtype))
    correction = 1 if c.raw("correction") is None else c.number("correction")
    divisor = max(count(x, dims) - correction, 0)
    return _finish(c, mapped(squares, x.dtype, lambda e: ar.div(e, ar.like(divisor, e))))


@lowers("linalg_vector_norm.default")
def lower_vector_norm(c: CallContext) -> Lazy:
    x, order = to_type(c.tensor("self"), c.out().dtype), c.number("ord")
    dims = dims_of(c, x)
    magnitude = mapped(x, x.dtype, ar.unary_op("abs"))
    wide = _wide(x.dtype)
    if order in (float("inf"), float("-inf")):
        return _finish(c, c.builder.reduce("max" if order > 0 else "min", magnitude, dims, wide)[0])
    if order == 0:
        nonzero = mapped(x, wide, lambda e: cast(ar.truth(e), wide))
        return _finish(c, c.builder.reduce("sum", nonzero, dims, wide)[0])
    if order == 1:
        return _finish(c, c.builder.reduce("sum", magnitude, dims, wide)[0])
    if order == 2:
        total = c.builder.reduce("sum", mapped(x, wide, lambda e: ar.mul(e, e)), dims, wide)[0]
        return _finish(c, mapped(total, x.dtype, ar.unary_op("sqrt")))
    total = c.builder.reduce("sum", mapped(magnitude, wide, lambda e: ar.pow(e, ar.like(order, e))), dims, wide)[0]
    return _finish(c, mapped(total, x.dtype, lambda e: ar.pow(e, ar.like(1 / order, e))))
