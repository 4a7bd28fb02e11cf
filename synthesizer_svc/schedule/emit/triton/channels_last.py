"""The input of a window laid out anew before its product, channels side by side (pure).

With positions side by side a tap moves by one of them: two of three taps begin at no multiple of 16 bytes, and are
fetched element by element. With channels side by side every tap of every position is whole lines.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.events import Bound
from synthesizer_svc.schedule import expr as ex
from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.emit.triton.copies import Copy, read_from
from synthesizer_svc.schedule.emit.triton.matrix import Product, product_of
from synthesizer_svc.schedule.emit.triton.spans import directly
from synthesizer_svc.schedule.expr import Condition, Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.ir import Group, Plan
from synthesizer_svc.schedule.lazy import Buffer
from synthesizer_svc.schedule.schedule import Decision

DIRECT, LAST = "direct", "channels_last"
KEY = "input"
LINE_BYTES = 16
"""What a thread fetches at once."""
CHANNELS_MANY = 32
"""Fewer make lines so short that a copy in whole lines gains little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What a window slides over: the load, and where it reads along each dimension of its buffer, channels last."""

    load: Expr
    dims: tuple[int, ...]
    """Dimensions of the buffer, in their new order."""
    places: tuple[Index, ...]


def input_of(plan: Plan, product: Product) -> Input | None:
    """The factor that taps and positions share a dimension of, if its channels do not lie side by side."""
    if not product.window:
        return None
    for factor, mine in ((product.a, product.m), (product.b, product.n)):
        load = directly(factor)
        if load is None:
            continue
        buffer = plan.buffer(load.attr[0])
        places = _places(load.attr[1][0], factor.attr if factor.op == "guard" else (), buffer)
        moved = [bool(set(p.axes()) & set(product.taps)) for p in places]
        slides = any(tap and set(p.axes()) & set(mine) for p, tap in zip(places, moved, strict=True))
        channels = [d for d, p in enumerate(places) if p.coefficient(product.channels) == 1 and not moved[d]]
        if slides and channels and buffer.strides[channels[0]] != 1:
            dims = (*(d for d in range(len(places)) if d != channels[0]), channels[0])
            return Input(load=load, dims=dims, places=tuple(places[d] for d in dims))
    return None


def _places(offset: Index, conditions: tuple[Condition, ...], buffer: Buffer) -> tuple[Index, ...]:
    """``offset`` by dimensions of ``buffer``; empty where it might cross from one into another."""
    shape, strides = buffer.shape, buffer.strides
    if strides != ix.contiguous(shape) or not all(isinstance(t, Axis) and c > 0 for t, c in offset.terms.items()):
        return ()
    terms: list[dict[ix.Term, int]] = [{} for _ in shape]
    for axis, coefficient in offset.terms.items():
        long = [d for d, s in enumerate(strides) if shape[d] > 1 and coefficient % s == 0 and coefficient >= s]
        if not long:
            return ()
        terms[long[0]][axis] = coefficient // strides[long[0]]
    places: list[Index] = []
    for extent, along in zip(shape, terms, strict=True):
        place = Index(0, along)
        for condition in conditions:
            if along and condition.index.terms == place.terms and condition.high - condition.low == extent:
                place = Index(condition.index.const - condition.low, along)  # the condition keeps it within
                break
        else:
            low, high = place.range()
            if low < 0 or high >= extent:
                return ()
        places.append(place)
    return tuple(places) if ix.linear(tuple(places), strides) == offset else ()


def decision(product: Product, itemsize: int) -> Decision:
    """Laid out anew by default where channels make whole lines: a tenth faster on an H200, the copy included."""
    lines = product.channels.extent * itemsize % LINE_BYTES == 0 and product.channels.extent >= CHANNELS_MANY
    return Decision(
        group=product.group.name,
        name=KEY,
        values=(DIRECT, LAST),
        default=LAST if lines else DIRECT,
        pays_when=(Bound.LATENCY, Bound.COMPUTE),
        why="with channels side by side every tap is fetched in whole lines; that takes a copy and one kernel more",
    )


def laid_out(plan: Plan, group: Group) -> Plan:
    """``plan`` with the input of the window ``group`` copied, channels last, by a group before it."""
    product = product_of(plan, group)
    found = input_of(plan, product) if product is not None else None
    if found is None:
        return plan
    source, name = plan.buffer(found.load.attr[0]), f"{group.name}_x"
    axes = tuple(Axis(f"{name}{n}", source.shape[d]) for n, d in enumerate(found.dims))
    read = ix.linear(tuple(ix.of(axis) for axis in axes), tuple(source.strides[d] for d in found.dims))
    copy = Copy(
        load=found.load,
        name=name,
        kernel=f"{group.name}_turn",
        axes=axes,
        value=ex.make("load", attr=(source.name, (read,), 0), dtype=found.load.dtype),
        places=found.places,
    )
    return read_from(plan, group, copy)
