"""Unpredictable poison for outputs: a kernel can neither skip an element nor recognise that it was asked before."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from shared.dtypes import DType

POOL_BYTES = 1 << 22
WORD = 8
CHUNK_BYTES = 1 << 17
"""Compared at a time; divides ``POOL_BYTES``."""
SMALL, ROWS, APART = 1 << 16, 1 << 10, 8 * 131
"""Rows of at most so many bytes get their poison so many at a time, from places so many bytes apart."""
NUDGED = 1 << 14
"""Elements changed at a time: what that makes stays in the first-level caches."""


@dataclass(frozen=True, slots=True)
class Stain:
    """One poisoning of one buffer: enough to tell later which elements still hold it."""

    offset: int
    nbytes: int


class Poison:
    """Random bytes, drawn once per worker from the operating system and laid out at a new random offset each time."""

    def __init__(self) -> None:
        generator = np.random.default_rng(secrets.randbits(128))
        pool = np.frombuffer(generator.bytes(POOL_BYTES), dtype=np.uint8)
        self._pool: NDArray[np.uint8] = np.concatenate([pool, pool])

    def apply(self, buffer: memoryview) -> Stain:
        """Overwrite ``buffer``."""
        target = np.frombuffer(buffer, dtype=np.uint8)
        stain = Stain(secrets.randbelow(POOL_BYTES // WORD) * WORD, target.size)
        for start in range(0, target.size, POOL_BYTES):
            part = target[start : start + POOL_BYTES]
            part[:] = self._pool[stain.offset : stain.offset + part.size]
        return stain

    def apply_rows(self, rows: NDArray[np.uint8]) -> list[Stain]:
        """Overwrite every one of ``rows``, each with other bytes than its neighbours."""
        count, nbytes = rows.shape
        if nbytes > SMALL:
            return [self.apply(memoryview(row)) for row in rows]
        stains: list[Stain] = []
        for start in range(0, count, ROWS):
            part = rows[start : start + ROWS]
            offset = secrets.randbelow(POOL_BYTES // WORD) * WORD
            part[...] = as_strided(self._pool[offset:], shape=part.shape, strides=(APART, 1))
            stains += [Stain(offset + APART * i, nbytes) for i in range(len(part))]
        return stains

    def nudge(self, buffer: memoryview, dtype: DType) -> None:
        """Flip the last bit of about half of the values of a float32 or float64 ``buffer``.

        Round numbers (zeros, ones, masks, infinities) stay: their last byte is zero.
        """
        if dtype not in (DType.F32, DType.F64):
            return
        values = np.frombuffer(buffer, dtype=f"u{dtype.itemsize}")
        offset = secrets.randbelow(POOL_BYTES // WORD) * WORD
        pool = self._pool[offset : offset + POOL_BYTES].view(values.dtype)
        for start in range(0, values.size, NUDGED):
            part, at = values[start : start + NUDGED], start % (pool.size - NUDGED)
            part ^= pool[at : at + part.size] & ((part & 0xFF) != 0)

    def untouched(self, stain: Stain, buffer: memoryview, itemsize: int) -> Iterator[NDArray[np.bool_]]:
        """Per element, whether it still holds what ``apply`` wrote, in chunks of ``CHUNK_BYTES``; by chance one in
        256**itemsize does.
        """
        got, kind = np.frombuffer(buffer, dtype=np.uint8), f"u{itemsize}"
        for start in range(0, got.size, CHUNK_BYTES):
            part, at = got[start : start + CHUNK_BYTES], stain.offset + start % POOL_BYTES
            yield part.view(kind) == self._pool[at : at + part.size].view(kind)
