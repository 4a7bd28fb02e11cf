"""Reads at positions that are data: embedding, gather, index_select, indexing (pure)."""

from __future__ import annotations

from shared.dtypes import DType
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.graph import Ref
from synthesizer_svc.schedule.index import Index, Indirect
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower import arith as ar
from synthesizer_svc.schedule.lower.contraction import in_memory
from synthesizer_svc.schedule.lower.pointwise import broadcast
from synthesizer_svc.schedule.lower.registry import CallContext, cast, lowers


def position(value: Expr, extent: int, *, wrap: bool) -> Index:
    """A data-dependent index into ``extent`` elements; negative ones count from the end when ``wrap``."""
    value = cast(value, DType.I64)
    index = ex.as_index(value)
    if not any(isinstance(t, Indirect) for t in index.walk()):
        return index
    if wrap:
        zero = ex.const(0, DType.I64)
        value = ar.where(ar.compare("lt", value, zero), ar.add(value, ex.const(extent, DType.I64)), value)
    # torch raises on an index out of range; a kernel cannot, but it must not read outside of the tensor either.
    return ex.as_index(ex.make("bounded", value, attr=extent, dtype=DType.I64))


@lowers("embedding.default")
def lower_embedding(c: CallContext) -> Lazy:
    weight, indices = c.tensor("weight"), c.tensor("indices")
    rank = len(indices.shape)
    return Lazy(
        c.out().shape,
        weight.dtype,
        lambda i: weight.at((position(indices.at(i[:rank]), weight.shape[0], wrap=False), *i[rank:])),
    )


@lowers("index_select.default")
def lower_index_select(c: CallContext) -> Lazy:
    x, indices = c.tensor("self"), c.tensor("index")
    dim = c.integer("dim") % len(x.shape)
    at = lambda i: x.at((*i[:dim], position(indices.at((i[dim],)), x.shape[dim], wrap=False), *i[dim + 1 :]))  # noqa: E731
    return Lazy(c.out().shape, x.dtype, at)


@lowers("gather.default")
def lower_gather(c: CallContext) -> Lazy:
    x, indices = c.tensor("self"), c.tensor("index")
    dim = c.integer("dim") % len(x.shape)
    at = lambda i: x.at((*i[:dim], position(indices.at(i), x.shape[dim], wrap=False), *i[dim + 1 :]))  # noqa: E731
    return Lazy(c.out().shape, x.dtype, at)


@lowers("index.Tensor", "_unsafe_index.Tensor")
def lower_index(c: CallContext) -> Lazy:
    x, raw = in_memory(c, c.tensor("self")), c.raw("indices")
    if not isinstance(raw, tuple):
        raise c.builder.refuse("is indexed by something that is not a list of tensors")
    picks = {d: c.resolve(r) for d, r in enumerate(raw) if isinstance(r, Ref)}
    if any(p.dtype is DType.BOOL for p in picks.values()):
        raise c.builder.refuse("is indexed by a mask, so its shape depends on data")
    dims = sorted(picks)
    rank = max(len(p.shape) for p in picks.values())
    adjacent = dims == list(range(dims[0], dims[-1] + 1))
    start = dims[0] if adjacent else 0

    def at(indices: Indices) -> Expr:
        picked = indices[start : start + rank]
        rest = iter((*indices[:start], *indices[start + rank :]))
        places = [
            position(broadcast(picks[d], picked), x.shape[d], wrap=True) if d in picks else next(rest)
            for d in range(len(x.shape))
        ]
        return x.at(tuple(places))

    return Lazy(c.out().shape, x.dtype, at)
