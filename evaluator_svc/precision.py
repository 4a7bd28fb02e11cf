"""Whether an output is that of a lower precision than the operator declares (pure).

Rule: a root-mean-square error at most half of what the next lower precision makes, wherever the declared precision
itself is that good; elsewhere the case says nothing about precision. What counts is the error, not the arithmetic: an
emulation of float32 on three bfloat16 or TensorFloat-32 products that is as accurate as float32 passes.
"""

from __future__ import annotations

import math

import numpy as np

from evaluator_svc.arrays import Array, on_host
from evaluator_svc.cases import UNIT_ROUNDOFF, LowPrecision, Reference, widened
from shared.dtypes import DType

LOW_FRACTION = 0.5
FEW, SAMPLE = 16, 1 << 16
"""Elements under which, and of which, the kind of an error is told: so few that a device's are looked at here."""
SYSTEMATIC = 0.92
"""Correlation of error and answer; truncation to bfloat16, the most biased of roundings, shows 0.87 = sqrt(3) / 2."""
MOSTLY = 0.99
TINY = 1e-7
"""Around float16's smallest step (2**-24), for values under its normal range."""


def as_bad_as_lower(reference: Reference, rmse: float) -> bool:
    """Whether an error within the limits is nevertheless one that a lower precision would make."""
    return any(low.whole and rmse > LOW_FRACTION * low.rmse for low in _informative(reference))


def is_of_lower(got: Array, reference: Reference, rmse: float, top: float) -> bool:
    """Whether an error above the limits is a lower precision's, and not simply a wrong answer."""
    if _stored_lower(got, reference):
        return True
    return _like_lower(reference, rmse, top) and not _systematic(got, reference)


def nearest(reference: Reference, rmse: float) -> LowPrecision:
    """The lower precision whose error is most like ``rmse``."""
    return min(reference.low, key=lambda low: abs(math.log(max(low.rmse, 1e-300) / max(rmse, 1e-300))))


def _informative(reference: Reference) -> list[LowPrecision]:
    return [low for low in reference.low if reference.rmse <= LOW_FRACTION * low.rmse]


def _like_lower(reference: Reference, rmse: float, top: float) -> bool:
    """Error between a quarter of the nearest and four times the coarsest lower precision, spread over the output."""
    informative = _informative(reference)
    if not informative or not top > 0:
        return False
    # A few elements may be right or wrong by luck: then only the nearest precision is believed.
    choose = max if reference.exact.size >= FEW else min
    coarsest = choose(low.rmse for low in informative)
    top_allowed = 4 * choose(low.max_error for low in informative)
    return min(low.rmse for low in informative) / 4 <= rmse <= 4 * coarsest and top <= top_allowed


def _stored_lower(got: Array, reference: Reference) -> bool:
    """Whether the outputs are the right answers, stored as values of a lower precision."""
    if not reference.low or reference.spec.dtype not in (DType.F32, DType.F64):
        return False
    mine, exact = _sample(got, reference)
    with np.errstate(over="ignore"):
        half = mine.astype(np.float16).astype(np.float64) == mine
    brain = (mine.astype(np.float32).view(np.uint32) & 0xFFFF) == 0
    for stored, dtype in ((half, DType.F16), (brain, DType.BF16)):
        near = np.abs(mine - exact) <= 2 * UNIT_ROUNDOFF[dtype] * np.abs(exact) + TINY
        if np.mean(stored & near) > MOSTLY and np.mean(mine == 0) < 1 - MOSTLY:
            return True
    return False


def _systematic(got: Array, reference: Reference) -> bool:
    """Whether errors go with the answers, as a wrong constant makes them; rounding leaves no such trace."""
    mine, exact = _sample(got, reference)
    error = mine - exact
    if exact.size < FEW or not (exact.std() > 0 and error.std() > 0):
        return False
    return bool(abs(np.corrcoef(error, exact)[0, 1]) > SYSTEMATIC)


def _sample(got: Array, reference: Reference) -> tuple[Array, Array]:
    """The first elements of an output and of its truth, as values in this process' memory."""
    return widened(on_host(got[:SAMPLE]), reference.spec.dtype), on_host(reference.exact[:SAMPLE])
