"""Many outputs against one answer, every element within one limit: the quick bound for timed calls (pure)."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import Array, chunk, contiguous, on_device, on_host
from evaluator_svc.cases import elements
from shared.dtypes import DType

ROW_MOST = 1 << 14
"""Elements of an output from which on it is compared by itself on a device."""


@singledispatch
def rows_near(rows: Any, right: Any, dtype: DType, limit: Any) -> NDArray[np.bool_]:
    """For each of ``rows`` (count x bytes, each row contiguous) whether all its elements are within ``limit`` of
    ``right`` (stored elements of ``dtype``, floating, beside it), compared in float32, or in float64 where that is what
    is stored. A NaN is near nothing. The answer lies in this process' memory.
    """
    count, size, step = rows.shape[0], right.size, chunk(rows)
    found = np.ones(count, dtype=np.bool_)
    # A device gives each row of a reduction along rows to one of its many processors, and a whole array to all.
    alone = on_device(rows) and size > ROW_MOST
    together = 1 if alone else max(1, step // size)
    for first in range(0, count, together):
        some = elements(contiguous(rows[first : first + together]), dtype).reshape(-1, size)
        for start in range(0, size, step):
            part = slice(start, start + step)
            difference = _narrow(some[:, part], dtype) - _narrow(right[part], dtype)
            most = np.abs(difference, out=difference)
            close = bool(most.reshape(-1).max() <= limit) if alone else on_host(most.max(axis=1) <= limit)
            found[first : first + together] &= close
    return found


def _narrow(stored: Array, dtype: DType) -> Array:
    """Stored elements in the least precise type that holds them all and that a processor has."""
    if dtype is DType.BF16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32) if dtype is DType.F16 else stored
