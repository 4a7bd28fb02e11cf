"""Tensors with strides, as address arithmetic (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

LOOKED_AT_BYTES = 4 << 30
"""Strides of results that were copied out of a device are the candidate's word, and may spell terabytes."""


@dataclass(frozen=True, slots=True)
class Strided:
    """A tensor in another process' memory: strides and ``itemsize`` in bytes, extents at least 1."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def span(self) -> int:
        """Bytes from the first to past the last element."""
        return sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + self.itemsize

    @property
    def contiguous(self) -> bool:
        dense = self.itemsize
        for n, s in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1 and s != dense:
                return False
            dense *= n
        return True


def overlaps_itself(tensor: Strided) -> bool:
    """Whether two elements share bytes. Exact for views that slicing, transposing and expanding can make."""
    dense = tensor.itemsize
    for stride, extent in sorted((s, n) for n, s in zip(tensor.shape, tensor.strides, strict=True) if n > 1):
        if stride < dense:
            return True
        dense = stride * (extent - 1) + dense
    return False


def overlap(one: Strided, other: Strided) -> bool:
    """Whether the two share bytes; so they do when they are interleaved over more than ``LOOKED_AT_BYTES``."""
    low, high = min(one.address, other.address), max(one.address + one.span, other.address + other.span)
    if high - low >= one.span + other.span:
        return False
    if high - low > LOOKED_AT_BYTES:
        return True
    marks: NDArray[np.uint8] = np.zeros(high - low, dtype=np.uint8)
    view(marks, one.address - low, one)[...] = 1
    return bool(view(marks, other.address - low, other).any())


def view(raw: NDArray[np.uint8], at: int, tensor: Strided) -> NDArray[np.uint8]:
    """Bytes of the elements, one axis more than the tensor."""
    shape: Sequence[int] = (*tensor.shape, tensor.itemsize)
    return as_strided(raw[at:], shape=shape, strides=(*tensor.strides, 1))
