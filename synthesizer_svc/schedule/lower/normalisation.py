"""Softmax and normalisations (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.pointwise import broadcast
from synthesizer_svc.schedule.lower.reductions import count, keepdims, mapped
from synthesizer_svc.schedule.lower.registry import CallContext, cast, lowers
from synthesizer_svc.schedule.lower.views import dim_of, view


@lowers("_softmax.default", "_log_softmax.default", "softmax.int", "log_softmax.int")
def lower_softmax(c: CallContext) -> Lazy:
    x = c.tensor("self")
    dim = (dim_of(c, x),) if x.shape else ()
    wide = DType.F64 if x.dtype is DType.F64 else DType.F32
    top, total = (keepdims(r, x.shape, dim) for r in c.builder.reduce("softstats", x, dim, wide))
    log = "log_softmax" in c.call.op

    def at(indices: Indices) -> Expr:
        shifted = ar.sub(x.at(indices), broadcast(top, indices))
        bottom = broadcast(total, indices)
        return (
            ar.sub(shifted, ar.unary_op("log")(bottom))
            if log
            else ar.div(ar.unary_op("exp_nonpositive")(shifted), bottom)
        )

    return Lazy(x.shape, c.out().dtype, at)


def normalised(
    c: CallContext, x: Lazy, dims: tuple[int, ...], eps: float, affine: tuple[Lazy | None, Lazy | None]
) -> tuple[Lazy, Lazy, Lazy]:
    """``(x - mean) * rstd * weight + bias`` over ``dims``, with mean and rstd as reduced tensors (float32 or wider)."""
    wide = DType.F64 if x.dtype is DType.F64 else DType.F32
    mean, squares = c.builder.reduce("moments", x, dims, wide)
    rstd = mapped(
        squares, wide, lambda e: ar.unary_op("rsqrt")(ar.add(ar.div(e, ar.like(count(x, dims), e)), ar.like(eps, e)))
    )
    mean_kept, rstd_kept = keepdims(mean, x.shape, dims), keepdims(rstd, x.shape, dims)
    weight, bias = affine

    def at(indices: Indices) -> Expr:
        value = ar.mul(ar.sub(x.at(indices), broadcast(mean_kept, indices)), broadcast(rstd_kept, indices))
        return _affine(value, weight, bias, indices)

    return Lazy(x.shape, c.out().dtype, at), mean, rstd


def _affine(value: Expr, weight: Lazy | None, bias: Lazy | None, indices: Indices) -> Expr:
    if weight is not None:
        value = ar.mul(value, ar.to(broadcast(weight, indices), value.dtype))
    return value if bias is None else ar.add(value, ar.to(broadcast(bias, indices), value.dtype))


def _per_channel(x: Lazy | None, rank: int, dim: int = 1) -> Lazy | None:
    """A vector over channels, shaped to broadcast along ``dim`` of ``rank`` dimensions."""
    return None if x is None else view(x, tuple(x.numel if d == dim else 1 for d in range(rank)))


@lowers("native_layer_norm.default")
def lower_layer_norm(c: CallContext) -> tuple[Lazy, ...]:
    x = c.tensor("input")
    dims = tuple(range(len(x.shape) - len(c.integers("normalized_shape")), len(x.shape)))
    y, mean, rstd = normalised(c, x, dims, c.number("eps"), (c.optional("weight"), c.optional("bias")))
    return y, keepdims(mean, x.shape, dims), keepdims(rstd, x.shape, dims)


@lowers("native_group_norm.default")
def lower_group_norm(c: CallContext) -> tuple[Lazy, ...]:
    x, groups = c.tensor("input"), c.integer("group")
    n, channels, pixels = x.shape[0], x.shape[1], x.numel // (x.shape[0] * x.shape[1])
    split = view(x, (n, groups, channels // groups, pixels))
    affine = tuple(
        None if p is None else view(p, (1, groups, channels // groups, 1))
        for p in (c.optional("weight"), c.optional("bias"))
    )
    y, mean, rstd = normalised(c, split, (2, 3), c.number("eps"), (affine[0], affine[1]))
    return view(y, x.shape), mean, rstd


@lowers("_native_batch_norm_legit.no_stats")
def lower_instance_norm(c: CallContext) -> tuple[Lazy, ...]:
    x = c.tensor("input")
    rank = len(x.shape)
    dims = tuple(d for d in range(rank) if d != 1)
    return normalised(
        c, x, dims, c.number("eps"), (_per_channel(c.optional("weight"), rank), _per_channel(c.optional("bias"), rank))
    )


@lowers("_native_batch_norm_legit_no_training.default")
def lower_batch_norm(c: CallContext) -> tuple[Lazy, ...]:
    x, eps = c.tensor("input"), c.number("eps")
    rank = len(x.shape)
    mean, var = _per_channel(c.tensor("running_mean"), rank), _per_channel(c.tensor("running_var"), rank)
    weight, bias = _per_channel(c.optional("weight"), rank), _per_channel(c.optional("bias"), rank)
    if mean is None or var is None:
        raise c.builder.refuse("has no running statistics")

    def at(indices: Indices) -> Expr:
        value = x.at(indices)
        rstd = ar.unary_op("rsqrt")(ar.add(ar.to(broadcast(var, indices), value.dtype), ar.like(eps, value)))
        shifted = ar.sub(value, ar.to(broadcast(mean, indices), value.dtype))
        return _affine(ar.mul(shifted, rstd), weight, bias, indices)

    empty = Lazy((0,), x.dtype, lambda _: cast(ar.like(0, x.at(())), x.dtype))
    return Lazy(x.shape, c.out().dtype, at), empty, empty
