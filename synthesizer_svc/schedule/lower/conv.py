"""Convolutions of one to three spatial dimensions: a contraction over channels and taps (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.contraction import in_memory
from synthesizer_svc.schedule.lower.registry import CallContext, lowers
from synthesizer_svc.schedule.lower.views import padded, view


@lowers("convolution.default")
def lower_convolution(c: CallContext) -> Lazy:
    if c.raw("transposed"):
        raise c.builder.refuse("is a transposed convolution, which has no lowering")
    x, weight, bias, out = c.tensor("input"), in_memory(c, c.tensor("weight")), c.optional("bias"), c.out()
    spatial, groups = len(x.shape) - 2, c.integer("groups")
    if len(out.shape) != len(x.shape):
        raise c.builder.refuse("has no batch dimension")
    stride, padding, dilation = (_each(c, name, spatial) for name in ("stride", "padding", "dilation"))
    if any(padding):
        shape = (*x.shape[:2], *(e + 2 * p for e, p in zip(x.shape[2:], padding, strict=True)))
        x = c.builder.realise(padded(x, (0, 0, *padding), shape, ar.like(0, x.at(_origin(x)))))
    x = in_memory(c, x)
    per_group, channels = out.shape[1] // groups, weight.shape[1]
    taps = weight.shape[2:]
    split = (out.shape[0], groups, per_group, *out.shape[2:], channels, *taps)

    def at(i: Indices) -> Expr:
        n, g, m, place = i[0], i[1], i[2], i[3 : 3 + spatial]
        channel, tap = i[3 + spatial], i[4 + spatial :]
        where = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True))
        return ar.mul(x.at((n, g * channels + channel, *where)), weight.at((g * per_group + m, channel, *tap)))

    inner = tuple(range(3 + spatial, len(split)))
    wide = DType.F32 if out.dtype in (DType.F16, DType.BF16) else out.dtype
    result = view(c.builder.reduce("sum", Lazy(split, out.dtype, at), inner, wide, contraction=True)[0], out.shape)
    if bias is None:
        return Lazy(out.shape, out.dtype, result.at)
    return Lazy(out.shape, out.dtype, lambda i: ar.add(result.at(i), bias.at((i[1],))))


def _each(c: CallContext, name: str, spatial: int) -> tuple[int, ...]:
    values = c.integers(name)
    return values * spatial if len(values) == 1 else values


def _origin(x: Lazy) -> Indices:
    return tuple(ix.constant(0) for _ in x.shape)
