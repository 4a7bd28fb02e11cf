"""Loss calls that torch keeps whole; most others arrive decomposed (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.gather import position
from synthesizer_svc.schedule.lower.registry import CallContext, cast, lowers

MEAN, SUM = 1, 2


@lowers("nll_loss_forward.default", "nll_loss2d_forward.default")
def lower_nll(c: CallContext) -> tuple[Lazy, ...]:
    x, target, weight = c.tensor("self"), c.tensor("target"), c.optional("weight")
    reduction, ignored = c.integer("reduction"), c.integer("ignore_index")
    dim = 1 if len(x.shape) > 1 else 0
    classes = x.shape[dim]

    def share(i: Indices) -> Expr:
        label = target.at(i)
        value = ar.like(1, x.at((*i[:dim], position(label, classes, wrap=False), *i[dim:])))
        if weight is not None:
            value = weight.at((position(label, classes, wrap=False),))
        return ar.where(ar.compare("ne", label, ex.const(ignored, label.dtype)), value, ar.like(0, value))

    def loss(i: Indices) -> Expr:
        label = target.at(i)
        value = x.at((*i[:dim], position(label, classes, wrap=False), *i[dim:]))
        scaled = ar.mul(value, weight.at((position(label, classes, wrap=False),))) if weight is not None else value
        keep = ar.compare("ne", label, ex.const(ignored, label.dtype))
        return ar.where(keep, ar.unary_op("neg")(scaled), ar.like(0, scaled))

    wide = DType.F32 if x.dtype in (DType.F16, DType.BF16) else x.dtype
    losses, shares = Lazy(target.shape, wide, loss), Lazy(target.shape, wide, share)
    dims = tuple(range(len(target.shape)))
    weights = c.builder.reduce("sum", shares, dims, wide)[0]
    if reduction not in (MEAN, SUM):
        return Lazy(target.shape, x.dtype, lambda i: cast(losses.at(i), x.dtype)), weights
    total = c.builder.reduce("sum", losses, dims, wide)[0]
    if reduction == SUM:
        return total, weights
    return Lazy((), x.dtype, lambda i: ar.div(total.at(i), weights.at(i))), weights
