"""Tiles of factors fetched by the copy engine: tensor descriptors (pure).

The engine takes boxes out of a tensor of two dimensions, fills with zero outside of it, and needs no thread for it.
Its lines begin at multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synthesizer_svc.schedule.emit.triton.matrix import Product
from synthesizer_svc.schedule.emit.triton.spans import Span
from synthesizer_svc.schedule.expr import Expr
from synthesizer_svc.schedule.index import Axis
from synthesizer_svc.schedule.lazy import Buffer

LINE_BYTES = 16
POINTERS, DESCRIPTOR = "pointers", "descriptors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """An argument that describes ``buffer``. ``turned``: positions of the sum come first in memory."""

    name: str
    buffer: str
    shape: tuple[int, int]
    stride: int
    block: tuple[int, int]
    turned: bool

    def load(self, side: str, depth: str) -> str:
        """The tile with the side of the result first for rows, last for columns, as the product needs it."""
        return f"{self.name}.load([{depth}, {side}])" if self.turned else f"{self.name}.load([{side}, {depth}])"

    @property
    def made(self) -> str:
        """The text that makes it of the tensor."""
        return f"TensorDescriptor({self.buffer}, {list(self.shape)}, [{self.stride}, 1], {list(self.block)})"


def possible(product: Product, buffers: Mapping[str, Buffer]) -> bool:
    """Whether both factors can be fetched so."""
    spans = [Span.whole(name, axes, 16) for name, axes in (("m", product.m), ("n", product.n))]
    depth = Span.whole("k", product.k, 16)
    factors = zip((product.a, product.b), spans, strict=True)
    return all(descriptor_of(product, factor, span, depth, buffers) is not None for factor, span in factors)


def descriptor_of(
    product: Product, factor: Expr, span: Span, depth: Span, buffers: Mapping[str, Buffer]
) -> Descriptor | None:
    """The descriptor of a factor's tiles; None where it is not a plain matrix of whole lines."""
    if factor.op != "load" or product.z or len(span.axes) != 1 or len(product.k) != 1:
        return None
    buffer, (offset,), _ = factor.attr
    (side,), (summed,) = span.axes, product.k
    itemsize = buffers[buffer].dtype.itemsize
    if buffers[buffer].dtype is not product.dtype or offset.const or not all(isinstance(t, Axis) for t in offset.terms):
        return None
    along, across = offset.coefficient(side) or 0, offset.coefficient(summed) or 0
    turned = along == 1
    stride, inner = (across, side) if turned else (along, summed)
    if min(along, across) != 1 or stride * itemsize % LINE_BYTES or stride < inner.extent:
        return None
    shape = (summed.extent, side.extent) if turned else (side.extent, summed.extent)
    return Descriptor(
        name=f"{span.name}_d",
        buffer=buffer,
        shape=shape,
        stride=stride,
        block=(depth.size, span.size) if turned else (span.size, depth.size),
        turned=turned,
    )
