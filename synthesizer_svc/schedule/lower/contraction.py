"""Matrix products: a sum of products whose operands sit in memory (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.pointwise import broadcast
from synthesizer_svc.schedule.lower.registry import CallContext, lowers
from synthesizer_svc.schedule.lower.views import view


def in_memory(c: CallContext, x: Lazy) -> Lazy:
    """Operands are read many times, so anything computed is computed once."""
    return x if x.plain else c.builder.realise(x)


def product(c: CallContext, a: Lazy, b: Lazy, dtype: DType) -> Lazy:
    """``[…, m, k] @ […, k, n]`` with equal batch dimensions."""
    a, b = in_memory(c, a), in_memory(c, b)
    batch, (m, k), n = a.shape[:-2], a.shape[-2:], b.shape[-1]
    rank = len(batch)

    def at(i: Indices) -> Expr:
        return ar.mul(a.at((*i[:rank], i[rank], i[rank + 2])), b.at((*i[:rank], i[rank + 2], i[rank + 1])))

    wide = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
    return c.builder.reduce("sum", Lazy((*batch, m, n, k), dtype, at), (rank + 2,), wide, contraction=True)[0]


def retyped(x: Lazy, dtype: DType) -> Lazy:
    return Lazy(x.shape, dtype, x.at, plain=x.plain)


@lowers("mm.default", "bmm.default")
def lower_mm(c: CallContext) -> Lazy:
    return retyped(product(c, c.tensor("self"), c.tensor("mat2"), c.out().dtype), c.out().dtype)


@lowers("mv.default")
def lower_mv(c: CallContext) -> Lazy:
    x, v = c.tensor("self"), c.tensor("vec")
    return view(product(c, x, view(v, (v.numel, 1)), c.out().dtype), c.out().shape)


@lowers("dot.default", "vdot.default")
def lower_dot(c: CallContext) -> Lazy:
    a, b = c.tensor("self"), c.tensor("other" if c.has("other") else "tensor")
    return view(product(c, view(a, (1, a.numel)), view(b, (b.numel, 1)), c.out().dtype), ())


@lowers("addmm.default", "baddbmm.default")
def lower_addmm(c: CallContext) -> Lazy:
    names = ("mat1", "mat2") if c.has("mat1") else ("batch1", "batch2")
    out = c.out()
    bias, result = c.tensor("self"), product(c, c.tensor(names[0]), c.tensor(names[1]), out.dtype)
    alpha, beta = c.number("alpha"), c.number("beta")

    def at(indices: Indices) -> Expr:
        value = ar.scaled(result.at(indices), alpha)
        # beta == 0 ignores the bias, NaN included, as BLAS does.
        return value if beta == 0 else ar.add(value, ar.scaled(broadcast(bias, indices), beta))

    return Lazy(out.shape, out.dtype, at)


@lowers("linear.default")
def lower_linear(c: CallContext) -> Lazy:
    x, weight, bias, out = c.tensor("input"), c.tensor("weight"), c.optional("bias"), c.out()
    flat = view(x, (x.numel // x.shape[-1], x.shape[-1]))
    turned = Lazy(
        (weight.shape[1], weight.shape[0]), weight.dtype, lambda i: weight.at((i[1], i[0])), plain=weight.plain
    )
    result = view(product(c, flat, turned, out.dtype), out.shape)
    if bias is None:
        return retyped(result, out.dtype)
    return Lazy(out.shape, out.dtype, lambda i: ar.add(result.at(i), broadcast(bias, i)))
