"""Views, concatenation and padding: calls that only rearrange elements (pure)."""

from __future__ import annotations

from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.expr import Condition, Expr
from synthesizer_svc.schedule.graph import Ref
from synthesizer_svc.schedule.lazy import Indices, Lazy
from synthesizer_svc.schedule.lower.pointwise import broadcast
from synthesizer_svc.schedule.lower.registry import CallContext, cast, lowers


def view(x: Lazy, shape: tuple[int, ...]) -> Lazy:
    """``x`` read in row-major order under another shape."""
    strides = ix.contiguous(shape)
    return Lazy(shape, x.dtype, lambda i: x.at(ix.unravel(ix.linear(i, strides), x.shape)), plain=x.plain)


def dim_of(c: CallContext, x: Lazy, name: str = "dim") -> int:
    dim = c.integer(name)
    return dim + len(x.shape) if dim < 0 else dim


@lowers("view.default", "reshape.default", "_unsafe_view.default", "squeeze.dims", "squeeze.dim", "squeeze.default",
        "unsqueeze.default", "flatten.using_ints", "unflatten.int")  # fmt: skip
def lower_view(c: CallContext) -> Lazy:
    return view(c.tensor("self" if c.has("self") else "a"), c.out().shape)


@lowers("permute.default", "t.default", "transpose.int")
def lower_permute(c: CallContext) -> Lazy:
    x = c.tensor("self")
    rank = len(x.shape)
    if c.has("dims"):
        order = tuple(d % rank for d in c.integers("dims"))
    else:
        a, b = (dim_of(c, x, "dim0"), dim_of(c, x, "dim1")) if c.has("dim0") else (0, rank - 1)
        order = tuple(b if d == a else a if d == b else d for d in range(rank))
    back = {source: position for position, source in enumerate(order)}
    return Lazy(c.out().shape, x.dtype, lambda i: x.at(tuple(i[back[d]] for d in range(rank))), plain=x.plain)


@lowers("expand.default", "broadcast_in_dim.default")
def lower_expand(c: CallContext) -> Lazy:
    x = c.tensor("self")
    return Lazy(c.out().shape, x.dtype, lambda i: broadcast(x, i), plain=x.plain)


@lowers("slice.Tensor")
def lower_slice(c: CallContext) -> Lazy:
    x, dim = c.tensor("self"), dim_of(c, c.tensor("self"))
    extent = x.shape[dim]
    start = 0 if c.raw("start") is None else c.integer("start")
    start = min(max(start + extent if start < 0 else start, 0), extent)
    step = c.integer("step")
    at = lambda i: x.at((*i[:dim], i[dim] * step + start, *i[dim + 1 :]))  # noqa: E731
    return Lazy(c.out().shape, x.dtype, at, plain=x.plain)


@lowers("select.int")
def lower_select(c: CallContext) -> Lazy:
    x, dim = c.tensor("self"), dim_of(c, c.tensor("self"))
    at_index = c.integer("index") % x.shape[dim]
    return Lazy(c.out().shape, x.dtype, lambda i: x.at((*i[:dim], ix.constant(at_index), *i[dim:])), plain=x.plain)


@lowers("split_with_sizes.default", "split.Tensor", "split_with_sizes_copy.default")
def lower_split(c: CallContext) -> tuple[Lazy, ...]:
    x, dim = c.tensor("self"), dim_of(c, c.tensor("self"))
    pieces, start = [], 0
    for output in c.call.outputs:
        if output is None:
            raise c.builder.refuse("has a result that is not a tensor")
        at = lambda i, start=start: x.at((*i[:dim], i[dim] + start, *i[dim + 1 :]))  # noqa: E731
        pieces.append(Lazy(output.shape, x.dtype, at, plain=x.plain))
        start += output.shape[dim]
    return tuple(pieces)


@lowers("flip.default")
def lower_flip(c: CallContext) -> Lazy:
    x = c.tensor("self")
    dims = {d % len(x.shape) for d in c.integers("dims")} if x.shape else set()
    at = lambda i: x.at(tuple(j * -1 + (x.shape[d] - 1) if d in dims else j for d, j in enumerate(i)))  # noqa: E731
    return Lazy(x.shape, x.dtype, at)


@lowers("repeat.default")
def lower_repeat(c: CallContext) -> Lazy:
    x, out = c.tensor("self"), c.out()
    at = lambda i: x.at(tuple(j % e for j, e in zip(i[len(i) - len(x.shape) :], x.shape, strict=True)))  # noqa: E731
    return Lazy(out.shape, x.dtype, at)


@lowers("cat.default")
def lower_cat(c: CallContext) -> Lazy:
    """Pieces are stored side by side; nothing tests which piece an element comes from."""
    refs = c.raw("tensors")
    if not isinstance(refs, tuple) or not all(isinstance(r, Ref) for r in refs):
        raise c.builder.refuse("concatenates something that is not a tensor")
    out, dim = c.out(), c.integer("dim") % max(len(c.out().shape), 1)
    pieces = [c.resolve(r) for r in refs]
    pieces = [p for p in pieces if p.numel > 0]
    name = f"cat{len(c.builder.nodes)}"
    c.builder.buffer(name, out.shape, out.dtype, "temp")
    start = 0
    for piece in pieces:
        cast_piece = Lazy(piece.shape, out.dtype, lambda i, p=piece: cast(p.at(i), out.dtype))  # type: ignore[misc]
        c.builder.store(cast_piece, name, tuple(start if d == dim else 0 for d in range(len(out.shape))))
        start += piece.shape[dim]
    return c.builder.read(name)


@lowers("constant_pad_nd.default")
def lower_pad(c: CallContext) -> Lazy:
    x, out, pad = c.tensor("self"), c.out(), c.integers("pad")
    before = [0] * len(x.shape)
    for pair in range(len(pad) // 2):
        before[len(x.shape) - 1 - pair] = pad[2 * pair]
    fill = cast(c.operand("value").at(()), out.dtype)
    return padded(x, tuple(before), out.shape, fill)


def padded(x: Lazy, before: tuple[int, ...], shape: tuple[int, ...], fill: Expr) -> Lazy:
    """``x`` shifted by ``before`` in a larger ``shape``; ``fill`` elsewhere, without reading outside ``x``."""

    def at(indices: Indices) -> Expr:
        inner = tuple(i + -b for i, b in zip(indices, before, strict=True))
        conditions = tuple(
            Condition(j, 0, e) for j, e in zip(inner, x.shape, strict=True) if j.range()[0] < 0 or j.range()[1] >= e
        )
        value = x.at(inner)
        return ex.make("guard", value, fill, attr=conditions, dtype=value.dtype) if conditions else value

    return Lazy(shape, x.dtype, at)


@lowers("as_strided.default")
def lower_as_strided(c: CallContext) -> Lazy:
    raise c.builder.refuse("reads memory by explicit strides, which depends on the layout of its operand")


@lowers("view.dtype")
def lower_reinterpret(c: CallContext) -> Lazy:
    raise c.builder.refuse("reinterprets the bytes of a tensor")


@lowers("diagonal.default")
def lower_diagonal(c: CallContext) -> Lazy:
    x = c.tensor("self")
    rank = len(x.shape)
    a, b = c.integer("dim1") % rank, c.integer("dim2") % rank
    offset = c.integer("offset")

    def at(indices: Indices) -> Expr:
        rest = iter(indices[:-1])
        step = indices[-1]
        place = {a: step + max(-offset, 0), b: step + max(offset, 0)}
        return x.at(tuple(place[d] if d in place else next(rest) for d in range(rank)))

    return Lazy(c.out().shape, x.dtype, at)


@lowers("upsample_nearest2d.vec", "upsample_nearest1d.vec", "upsample_nearest2d.default", "upsample_nearest1d.default")
def lower_upsample(c: CallContext) -> Lazy:
    x, out = c.tensor("input" if c.has("input") else "self"), c.out()
    ratios = [o // e for o, e in zip(out.shape, x.shape, strict=True)]
    if any(e * r != o for e, r, o in zip(x.shape, ratios, out.shape, strict=True)):
        raise c.builder.refuse("scales by a factor that is not a whole number")
    return Lazy(out.shape, x.dtype, lambda i: x.at(tuple(j // r for j, r in zip(i, ratios, strict=True))))
