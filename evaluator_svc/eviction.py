"""Emptying the caches before a cold call."""

from __future__ import annotations

import numpy as np

from shared.machine import processor

LAST_LEVELS = 4
"""Writing this many times the last-level cache leaves nothing of what it held."""
FALLBACK_BYTES = 32 << 20
"""Assumed size where the machine does not tell; larger than common last-level slices."""


class Evictor:
    """A buffer that is written over; inputs and outputs rewritten before it by another core are in memory after it."""

    def __init__(self) -> None:
        last = max(processor().cache_bytes.values(), default=FALLBACK_BYTES)
        self._buffer = np.zeros(LAST_LEVELS * last, dtype=np.uint8)
        self._turn = 0

    def __call__(self) -> None:
        self._turn = (self._turn + 1) % 256
        self._buffer.fill(self._turn)
