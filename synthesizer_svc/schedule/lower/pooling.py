"""Pooling: reductions over windows (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Condition, Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.reductions import mapped
from synthesizer_svc.schedule.lower.registry import CallContext, lowers


def _window(c: CallContext, name: str, spatial: int, default: tuple[int, ...]) -> tuple[int, ...]:
    raw = c.raw(name)
    values = default if raw is None or raw == () else c.integers(name)
    return values * spatial if len(values) == 1 else values


def windows(c: CallContext, x: Lazy, fill: float) -> tuple[Lazy, tuple[int, ...], int]:
    """``x`` as ``[…, outputs…, taps…]``: every window spelled out, ``fill`` outside."""
    out = c.out()
    spatial = len(c.integers("kernel_size"))
    spatial = max(spatial, 2 if "2d" in c.call.op else 3 if "3d" in c.call.op else 1)
    kernel = _window(c, "kernel_size", spatial, ())
    stride = _window(c, "stride", spatial, kernel)
    padding = _window(c, "padding", spatial, (0,))
    dilation = _window(c, "dilation", spatial, (1,))
    lead = len(x.shape) - spatial
    fill_value = ex.const(fill, x.at(tuple(ix.constant(0) for _ in x.shape)).dtype)

    def at(indices: Indices) -> Expr:
        place, tap = indices[lead : lead + spatial], indices[lead + spatial :]
        spots = tuple(p * s + t * d + -b for p, s, t, d, b in zip(place, stride, tap, dilation, padding, strict=True))
        checks = tuple(
            Condition(j, 0, e)
            for j, e in zip(spots, x.shape[lead:], strict=True)
            if j.range()[0] < 0 or j.range()[1] >= e
        )
        value = x.at((*indices[:lead], *spots))
        return ex.make("guard", value, fill_value, attr=checks, dtype=value.dtype) if checks else value

    shape = (*out.shape[:lead], *out.shape[lead:], *kernel)
    return Lazy(shape, x.dtype, at), kernel, lead


@lowers(
    "max_pool2d_with_indices.default", "max_pool2d.default", "max_pool1d.default", "max_pool3d_with_indices.default"
)
def lower_max_pool(c: CallContext) -> Lazy | tuple[Lazy, ...]:
    x = _plain(c, c.tensor("self"))
    if not x.dtype.floating:
        raise c.builder.refuse("pools integers")
    spread, kernel, _ = windows(c, x, float("-inf"))
    rank = len(spread.shape)
    return (c.builder.reduce("max", spread, tuple(range(rank - len(kernel), rank)), x.dtype)[0],)


def _plain(c: CallContext, x: Lazy) -> Lazy:
    """Windows overlap: a costly operand is computed once."""
    return x if x.plain else c.builder.realise(x)


@lowers("avg_pool2d.default", "avg_pool1d.default", "avg_pool3d.default")
def lower_avg_pool(c: CallContext) -> Lazy:
    x = _plain(c, c.tensor("self"))
    spread, kernel, _ = windows(c, x, 0.0)
    rank = len(spread.shape)
    dims = tuple(range(rank - len(kernel), rank))
    wide = DType.F32 if x.dtype in (DType.F16, DType.BF16) else x.dtype
    total = c.builder.reduce("sum", spread, dims, wide)[0]
    override = c.raw("divisor_override")
    padding = _window(c, "padding", len(kernel), (0,))
    if override is not None or not any(padding):
        size = float(c.number("divisor_override")) if override is not None else 1.0
        for extent in kernel if override is None else ():
            size *= extent
        if override is None and c.raw("ceil_mode"):
            raise c.builder.refuse("rounds the output size up, which has no lowering")
        return mapped(total, x.dtype, lambda e: ar.div(e, ar.like(size, e)))
    if c.raw("ceil_mode"):
        raise c.builder.refuse("rounds the output size up, which has no lowering")
    if c.raw("count_include_pad"):
        size = 1.0
        for extent in kernel:
            size *= extent
        return mapped(total, x.dtype, lambda e: ar.div(e, ar.like(size, e)))
    ones = Lazy(x.shape, x.dtype, lambda i: ar.like(1, x.at(i)))
    counted, _, _ = windows(c, ones, 0.0)
    cells = c.builder.reduce("sum", counted, dims, wide)[0]
    return Lazy(total.shape, x.dtype, lambda i: ar.div(total.at(i), cells.at(i)))


@lowers("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def lower_adaptive(c: CallContext) -> Lazy:
    x, out = _plain(c, c.tensor("self")), c.out()
    ratios = [e // o for e, o in zip(x.shape, out.shape, strict=True)]
    if any(r * o != e for r, o, e in zip(ratios, out.shape, x.shape, strict=True)):
        raise c.builder.refuse("has windows of unequal sizes")
    taps = [(d, r) for d, r in enumerate(ratios) if r > 1]
    rank = len(out.shape)

    def at(indices: Indices) -> Expr:
        offsets = {d: indices[rank + k] for k, (d, _) in enumerate(taps)}
        return x.at(tuple(i * ratios[d] + offsets[d] if d in offsets else i for d, i in enumerate(indices[:rank])))

    spread = Lazy((*out.shape, *(r for _, r in taps)), x.dtype, at)
    wide = DType.F32 if x.dtype in (DType.F16, DType.BF16) else x.dtype
    total = c.builder.reduce("sum", spread, tuple(range(rank, rank + len(taps))), wide)[0]
    size = 1
    for _, ratio in taps:
        size *= ratio
    return mapped(total, x.dtype, lambda e: ar.div(e, ar.like(size, e)))
