"""Windows whose factors the copy engine fetches tap by tap: boxes out of a tensor of up to five dimensions (pure).

With positions side by side a tap moves by one of them, which is no multiple of 16 bytes; threads then fetch single
elements. The engine takes a box at any coordinates, and fills with zero outside of the tensor: that is the padding. Its
box lies along one dimension of positions, so a tile has positions of one row of one image; the others are batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from synthesizer_svc.schedule.emit.triton.channels_last import places_of
from synthesizer_svc.schedule.emit.triton.descriptors import LINE_BYTES
from synthesizer_svc.schedule.emit.triton.matrix import Product
from synthesizer_svc.schedule.emit.triton.spans import Span, directly
from synthesizer_svc.schedule.emit.triton.types import HALVES
from synthesizer_svc.schedule.emit.triton.values import Frame, Spot, Values
from synthesizer_svc.schedule.expr import Condition, Expr
from synthesizer_svc.schedule.index import Axis, Index
from synthesizer_svc.schedule.lazy import Buffer

RANK_MAX = 5
"""Dimensions that the engine counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An argument that describes ``buffer``, whose last two dimensions a tile lies along; ``places``: where it begins.

    ``turned``: positions of the sum come first in memory.
    """

    name: str
    buffer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    places: tuple[Index, ...]
    block: tuple[int, int]
    turned: bool

    def load(self, tap: Mapping[Axis, Index], values: Values, side: tuple[Axis, str], depth: Axis) -> str:
        """The tile of ``tap``; ``side``: the axis of the result, and where the tile begins along it."""
        axis, start = side
        at = replace(values, spots={**values.spots, axis: Spot(start), depth: Spot("k")})
        places = (place.substitute(tap, lambda value: value) for place in self.places)
        first = ", ".join(at.index_text(place, Frame()) for place in places)
        return f"{self.name}.load([{first}]).reshape({self.block[0]}, {self.block[1]})"

    @property
    def made(self) -> str:
        """The text that makes it of the tensor."""
        block = [1] * (len(self.shape) - 2) + list(self.block)
        return f"TensorDescriptor({self.buffer}, {list(self.shape)}, {list(self.strides)}, {block})"


def boxed(product: Product, buffers: Mapping[str, Buffer]) -> Product | None:
    """``product`` with positions along one dimension only, where boxes of what slides can be fetched; else None.

    Everything else that numbers its positions becomes a batch, so that no tile crosses from one row into the next.
    """
    if not product.window or product.dtype not in HALVES:
        return None
    for mine, factor in ((product.m, product.a), (product.n, product.b)):
        axis = _sliding(product, mine, factor, buffers)
        if axis is None:
            continue
        rest = tuple(a for a in mine if a != axis)
        z = (*rest, *product.z)
        found = replace(product, z=z, m=(axis,)) if mine is product.m else replace(product, z=z, n=(axis,))
        spans = Span.whole("m", (axis,), 16), Span.whole("k", (product.channels,), 16)
        return found if box_of(found, factor, *spans, buffers) is not None else None
    return None


def _sliding(product: Product, mine: tuple[Axis, ...], factor: Expr, buffers: Mapping[str, Buffer]) -> Axis | None:
    """The axis of ``mine`` along which neighbours lie side by side, and taps move by whole elements."""
    load = directly(factor)
    if load is None:
        return None
    places = places_of(load.attr[1][0], factor.attr if factor.op == "guard" else (), buffers[load.attr[0]])
    if not places:
        return None
    along = [a for a in places[-1].axes() if a in mine]
    moved = any(a in product.taps for place in places for a in place.axes())
    return along[0] if moved and len(along) == 1 and places[-1].coefficient(along[0]) == 1 else None


def box_of(
    product: Product, factor: Expr, span: Span, depth: Span, buffers: Mapping[str, Buffer]
) -> Box | None:
    """The boxes that tiles of a factor of a ``boxed`` product are; None where they cannot be fetched."""
    load = directly(factor)
    if load is None or len(span.axes) != 1:
        return None
    buffer, conditions = buffers[load.attr[0]], factor.attr if factor.op == "guard" else ()
    places = places_of(load.attr[1][0], conditions, buffer)
    if not places or len(places) > RANK_MAX or buffer.dtype is not product.dtype:
        return None
    if any(s * buffer.dtype.itemsize % LINE_BYTES for s in buffer.strides[:-1]):
        return None
    (side,), channels = span.axes, product.channels
    across = [d for d, place in enumerate(places) if place.coefficient(side)]
    summed = [d for d, place in enumerate(places) if place.coefficient(channels)]
    last = len(places) - 1
    if len(across) != 1 or len(summed) != 1 or across == summed or last not in (*across, *summed):
        return None
    # Beyond the channels of a group lie those of the next, and not the zeros that end a sum.
    whole = places[summed[0]] == Index(0, {channels: 1}) and buffer.shape[summed[0]] == channels.extent
    if places[across[0]].coefficient(side) != 1 or not whole or not _padding_only(conditions, places, buffer):
        return None
    turned = across[0] == last
    order = [*(d for d in range(len(places)) if d not in (*across, *summed)), *sorted((*across, *summed))]
    return Box(
        name=f"{span.name}_d",
        buffer=buffer.name,
        shape=tuple(buffer.shape[d] for d in order),
        strides=tuple(buffer.strides[d] for d in order),
        places=tuple(places[d] for d in order),
        block=(depth.size, span.size) if turned else (span.size, depth.size),
        turned=turned,
    )


def _padding_only(conditions: tuple[Condition, ...], places: tuple[Index, ...], buffer: Buffer) -> bool:
    """Whether every condition asks whether a place lies within its dimension."""
    return all(
        any(
            c.index.terms == place.terms and c.index.const - c.low == place.const and c.high - c.low == extent
            for place, extent in zip(places, buffer.shape, strict=True)
        )
        for c in conditions
    )
