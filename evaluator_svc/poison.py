"""Unpredictable poison for outputs: a kernel can neither skip an element nor recognise that it was asked before."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import Array, Bytes, beside, flat, namespace, on_device
from shared.dtypes import DType

POOL_BYTES = 1 << 22
WORD = 8
CHUNK_BYTES = 1 << 17
"""Compared at a time; divides ``POOL_BYTES``."""
DEVICE_BYTES = 1 << 26
"""The same on a device; a multiple of ``POOL_BYTES``."""
SMALL, ROWS, APART = 1 << 16, 1 << 10, 8 * 131
"""Rows of at most so many bytes get their poison so many at a time, from places so many bytes apart."""
NUDGED = 1 << 14
"""Elements changed at a time: what that makes stays in the first-level caches. On a device as many as the pool has."""


@dataclass(frozen=True, slots=True)
class Stain:
    """One poisoning of one buffer: enough to tell later which elements still hold it."""

    offset: int
    nbytes: int


class Poison:
    """Random bytes, drawn once per worker from the operating system and laid out at a new random offset each time.

    Buffers lie in this process' memory or on a device, where the same bytes are once one is poisoned there.
    """

    def __init__(self) -> None:
        generator = np.random.default_rng(secrets.randbits(128))
        pool = np.frombuffer(generator.bytes(POOL_BYTES), dtype=np.uint8)
        self._pool: Array = np.concatenate([pool, pool])
        self._moved: Array | None = None
        """The pool on the device."""

    def apply(self, buffer: Bytes) -> Stain:
        """Overwrite ``buffer``."""
        target = flat(buffer)
        pool = self._beside(target)
        stain = Stain(secrets.randbelow(POOL_BYTES // WORD) * WORD, target.size)
        whole = target.size - target.size % POOL_BYTES
        if whole:
            target[:whole].reshape(-1, POOL_BYTES)[...] = pool[stain.offset : stain.offset + POOL_BYTES]
        target[whole:] = pool[stain.offset : stain.offset + target.size - whole]
        return stain

    def apply_rows(self, rows: Array) -> list[Stain]:
        """Overwrite every one of ``rows`` (of bytes), each with other bytes than the others, whose poison begins
        elsewhere in the pool: the distance is no divisor of its length, so that half a million rows are apart.
        """
        count, nbytes = rows.shape
        if nbytes > SMALL:
            return [self.apply(row) for row in rows]
        pool, as_strided = self._beside(rows), namespace(rows).lib.stride_tricks.as_strided
        stains: list[Stain] = []
        first = secrets.randbelow(POOL_BYTES // WORD) * WORD
        for start in range(0, count, ROWS):
            part = rows[start : start + ROWS]
            offset = (first + APART * start) % POOL_BYTES
            part[...] = as_strided(pool[offset:], shape=part.shape, strides=(APART, 1))
            stains += [Stain(offset + APART * i, nbytes) for i in range(len(part))]
        return stains

    def nudge(self, buffer: Bytes, dtype: DType) -> None:
        """Flip the last bit of about half of the values of a float32 or float64 ``buffer``.

        Round numbers (zeros, ones, masks, infinities) stay: their last byte is zero.
        """
        if dtype not in (DType.F32, DType.F64):
            return
        values = flat(buffer).view(f"u{dtype.itemsize}")
        offset = secrets.randbelow(POOL_BYTES // WORD) * WORD
        pool = self._beside(values)[offset : offset + POOL_BYTES].view(values.dtype)
        step = pool.size if on_device(values) else NUDGED
        for start in range(0, values.size, step):
            part, at = values[start : start + step], start % max(1, pool.size - step)
            part ^= pool[at : at + part.size] & ((part & 0xFF) != 0)

    def untouched(self, stain: Stain, buffer: Bytes, itemsize: int) -> Iterator[NDArray[np.bool_]]:
        """Per element, whether it still holds what ``apply`` wrote, in chunks, where ``buffer`` lies; by chance one in
        256**itemsize does.
        """
        got, kind = flat(buffer), f"u{itemsize}"
        pool, step = self._beside(got), DEVICE_BYTES if on_device(got) else CHUNK_BYTES
        for start in range(0, got.size, step):
            part, at = got[start : start + step], stain.offset + start % POOL_BYTES
            whole = part.size - part.size % POOL_BYTES
            if whole:
                period = pool[at : at + POOL_BYTES].view(kind)
                yield (part[:whole].view(kind).reshape(-1, period.size) == period).reshape(-1)
            if whole < part.size:
                yield part[whole:].view(kind) == pool[at : at + part.size - whole].view(kind)

    def _beside(self, buffer: Array) -> Array:
        """The pool where ``buffer`` lies."""
        if not on_device(buffer):
            return self._pool
        if self._moved is None:
            self._moved = beside(self._pool, buffer)
        return self._moved
