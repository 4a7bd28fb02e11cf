"""Calls that make tensors from numbers (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower.registry import CallContext, cast, lowers, scalar


@lowers("full.default", "full_like.default", "new_full.default", "scalar_tensor.default")
def lower_full(c: CallContext) -> Lazy:
    out = c.out()
    name = next(n for n in ("fill_value", "value", "s") if c.has(n))
    value = c.operand(name)
    return Lazy(out.shape, out.dtype, lambda _: cast(value.at(()), out.dtype), plain=True)


@lowers("zeros.default", "zeros_like.default", "new_zeros.default")
def lower_zeros(c: CallContext) -> Lazy:
    out = c.out()
    return Lazy(out.shape, out.dtype, lambda _: cast(ex.const(0, DType.I64), out.dtype), plain=True)


@lowers("ones.default", "ones_like.default", "new_ones.default")
def lower_ones(c: CallContext) -> Lazy:
    out = c.out()
    return Lazy(out.shape, out.dtype, lambda _: cast(ex.const(1, DType.I64), out.dtype), plain=True)


@lowers("arange.start_step", "arange.default", "arange.start", "iota.default")
def lower_arange(c: CallContext) -> Lazy:
    out = c.out()
    start = c.number("start") if c.raw("start") is not None else 0
    step = c.number("step") if c.raw("step") is not None else 1

    def at(indices: Indices) -> ex.Expr:
        if out.dtype is DType.I64:
            return ex.position(indices[0] * int(step) + int(start))
        position = cast(ex.position(indices[0]), out.dtype)
        scaled = ex.make("mul", position, cast(scalar(step).at(()), out.dtype), dtype=position.dtype)
        return ex.make("add", scaled, cast(scalar(start).at(()), out.dtype), dtype=position.dtype)

    return Lazy(out.shape, out.dtype, at)
