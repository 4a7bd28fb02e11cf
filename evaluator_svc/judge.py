"""The verdict on one output: its bytes against its reference (pure).

The rule follows the fp64-anchored practice of ``torch._dynamo.utils.same`` and of FlashAttention's tests: an error is
measured against fp64 and compared with what a trusted implementation of the same precision makes. Multipliers and
floors are set where summation order, FMA contraction and exponentials good to 2 ulp pass on every example operator
and every standard mutant (``mutants.py``) fails; the tests hold both directions.

===================  =====================================================================================
finite pattern       NaN and infinities where, and of the sign, the declared-precision reference has them
root mean square     at most ``rmse_multiple`` x the reference's + ``rmse_floor_ulps`` ulp of the output's rms
maximum              at most ``max_multiple`` x the reference's + ``max_floor_ulps`` ulp of the output's maximum
lower precision      at most half the error of the nearest lower precision, where that is informative
integers, booleans   equal
===================  =====================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluator_svc.cases import CHUNK, UNIT_ROUNDOFF, Array, Bytes, Reference, elements, errors, widened
from shared.dtypes import DType
from shared.events import Entry, Status

LOW_FRACTION = 0.5
HELD_OUT_RMSE, HELD_OUT_MAX = 4, 8
"""Multiples of the floors on held-out values. A serial fp32 sum loses each term under half an ulp of what it holds: a
thousand exponentials 17 below their row's maximum are 500 ulp (found with heavy tails in a softmax)."""
FEW, SAMPLE = 16, 1 << 16
"""Elements under which, and of which, the kind of an error is told."""
SYSTEMATIC = 0.92
"""Correlation of error and answer; truncation to bfloat16, the most biased of roundings, shows 0.87 = sqrt(3) / 2."""
MOSTLY = 0.99
TINY = 1e-7
"""Around float16's smallest step (2**-24), for values under its normal range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Multiples of the reference's error and floors in ulp, for root mean square and maximum."""

    rmse_multiple: float
    rmse_floor_ulps: float
    max_multiple: float
    max_floor_ulps: float


WIDE = Tolerance(rmse_multiple=10.0, rmse_floor_ulps=32.0, max_multiple=10.0, max_floor_ulps=64.0)
"""float32, float64. A serial fp32 sum of 1,024 terms is off by up to ~10 ulp; 32 is a hundredth of what fp16 makes."""
NARROW = Tolerance(rmse_multiple=3.0, rmse_floor_ulps=2.0, max_multiple=4.0, max_floor_ulps=8.0)
"""16-bit types, whose kernels accumulate wider and round once (``torch._dynamo.utils.same`` has 3 for them, too)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """PASSED, or why not. Evidence has the numbers."""

    status: Status = Status.PASSED
    evidence: tuple[Entry, ...] = ()

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED


def tolerance(dtype: DType) -> Tolerance:
    """The limits of a floating ``dtype``."""
    return WIDE if dtype in (DType.F32, DType.F64) else NARROW


def rmse_limit(reference: Reference) -> float:
    """Largest acceptable root-mean-square error (absolute)."""
    allowed = tolerance(reference.spec.dtype)
    floors = allowed.rmse_floor_ulps * (HELD_OUT_RMSE if reference.held_out else 1)
    floor = floors * UNIT_ROUNDOFF[reference.spec.dtype] * reference.scale_rms
    return allowed.rmse_multiple * reference.rmse + floor


def max_limit(reference: Reference) -> float:
    """Largest acceptable error of one element (absolute)."""
    allowed = tolerance(reference.spec.dtype)
    floors = allowed.max_floor_ulps * (HELD_OUT_MAX if reference.held_out else 1)
    floor = floors * UNIT_ROUNDOFF[reference.spec.dtype] * reference.scale_max
    return allowed.max_multiple * reference.max_error + floor


QUIET = np.errstate(invalid="ignore", over="ignore")
"""Wrong outputs may hold anything; infinities and NaN in a difference are findings, not accidents."""


@QUIET
def judge(reference: Reference, data: Bytes, *, bitwise: bool = False) -> Verdict:
    """Judge raw output bytes of ``reference.spec``; ``bitwise`` demands the declared reference's very bytes."""
    dtype = reference.spec.dtype
    got = elements(data, dtype)
    if bitwise or not dtype.floating:
        return _equal(got, reference)
    if not reference.finite:
        return _judge_special(got, reference)
    rmse, top = errors(got, reference.exact, dtype)
    if not math.isfinite(top):
        return _wrong(got, reference, rmse, top, "output is not finite where the reference is")
    if rmse <= rmse_limit(reference) and top <= max_limit(reference):
        return _discriminate(reference, rmse, top)
    if _rounded_lower(got, reference) or (
        _like_lower_precision(reference, rmse, top) and not _systematic(got, reference)
    ):
        return _downgrade(reference, rmse, top)
    return _wrong(got, reference, rmse, top, "error above the limit")


@QUIET
def within(reference: Reference, data: Bytes) -> bool:
    """The quick bound for timed calls: every element near the declared reference. Implied by ``judge`` passing."""
    dtype = reference.spec.dtype
    got = elements(data, dtype)
    if not dtype.floating:
        return bool(np.array_equal(got, reference.declared))
    if dtype is not DType.F32 or not reference.finite:
        return judge(reference, data).passed
    limit = np.float32(max_limit(reference) + reference.max_error) * np.float32(1.001)
    for start in range(0, got.size, CHUNK):
        difference = got[start : start + CHUNK] - reference.declared[start : start + CHUNK]
        # A NaN fails the comparison, as it must.
        if not np.abs(difference, out=difference).max() <= limit:
            return False
    return True


def _discriminate(reference: Reference, rmse: float, top: float) -> Verdict:
    """Rule "lower precision": refuse what the limits let through but a lower precision would make."""
    for low in reference.low:
        informative = reference.rmse <= LOW_FRACTION * low.rmse
        if informative and rmse > LOW_FRACTION * low.rmse:
            return _downgrade(reference, rmse, top)
    return Verdict(evidence=_numbers(reference, rmse, top))


def _like_lower_precision(reference: Reference, rmse: float, top: float) -> bool:
    """Error between a quarter of the nearest and four times the coarsest lower precision, spread over the output."""
    if not reference.low or not top > 0:
        return False
    informative = [low for low in reference.low if reference.rmse <= LOW_FRACTION * low.rmse]
    if not informative:
        return False
    nearest = min(low.rmse for low in informative)
    # A few elements may be right or wrong by luck: then only the nearest precision is believed.
    choose = max if reference.exact.size >= FEW else min
    coarsest = choose(low.rmse for low in informative)
    top_allowed = 4 * choose(low.max_error for low in informative)
    return nearest / 4 <= rmse <= 4 * coarsest and top <= top_allowed


def _rounded_lower(got: Array, reference: Reference) -> bool:
    """Whether the outputs are the right answers, stored as values of a lower precision."""
    if not reference.low:
        return False
    mine, exact = widened(got[:SAMPLE], reference.spec.dtype), reference.exact[:SAMPLE]
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
    exact = reference.exact[:SAMPLE]
    error = widened(got[:SAMPLE], reference.spec.dtype) - exact
    if exact.size < FEW or not (exact.std() > 0 and error.std() > 0):
        return False
    return bool(abs(np.corrcoef(error, exact)[0, 1]) > SYSTEMATIC)


def _downgrade(reference: Reference, rmse: float, top: float) -> Verdict:
    near = min(reference.low, key=lambda low: abs(math.log(max(low.rmse, 1e-300) / max(rmse, 1e-300))))
    evidence = (
        Entry(name="reason", value=f"error is that of {near.name}, the operator declares {reference.spec.dtype.value}"),
        Entry(name="rmse_of_lower_precision", value=f"{near.rmse:.3e}"),
        *_numbers(reference, rmse, top),
    )
    return Verdict(status=Status.PRECISION_DOWNGRADE, evidence=evidence)


def _wrong(got: Array, reference: Reference, rmse: float, top: float, reason: str) -> Verdict:
    entries = [Entry(name="reason", value=reason), *_numbers(reference, rmse, top)]
    return Verdict(status=Status.WRONG_RESULT, evidence=(*entries, *_first_wrong(got, reference)))


def _numbers(reference: Reference, rmse: float, top: float) -> tuple[Entry, ...]:
    return (
        Entry(name="rmse", value=f"{rmse:.3e}"),
        Entry(name="rmse_limit", value=f"{rmse_limit(reference):.3e}"),
        Entry(name="max_error", value=f"{top:.3e}"),
        Entry(name="max_error_limit", value=f"{max_limit(reference):.3e}"),
    )


def _first_wrong(got: Array, reference: Reference) -> tuple[Entry, ...]:
    """Index, value and truth of the first element beyond the elementwise limit, and how many are."""
    limit, first, count = max_limit(reference), -1, 0
    for start in range(0, got.size, CHUNK):
        exact = reference.exact[start : start + CHUNK]
        bad = ~(np.abs(widened(got[start : start + CHUNK], reference.spec.dtype) - exact) <= limit)
        count += int(np.count_nonzero(bad))
        if first < 0 and bad.any():
            first = start + int(np.argmax(bad))
    if first < 0:
        return ()
    index = tuple(int(i) for i in np.unravel_index(first, reference.spec.shape)) if reference.spec.shape else ()
    value = widened(got[first : first + 1], reference.spec.dtype)[0]
    return (
        Entry(name="first_wrong_index", value=str(list(index))),
        Entry(name="got", value=f"{value:.9g}"),
        Entry(name="expected", value=f"{reference.exact[first]:.9g}"),
        Entry(name="wrong_elements", value=f"{count} of {got.size}"),
    )


def _equal(got: Array, reference: Reference) -> Verdict:
    """Exact equality of stored elements."""
    if got.tobytes() == reference.declared.tobytes():
        return Verdict()
    differs = got.view(f"u{got.dtype.itemsize}") != reference.declared.view(f"u{got.dtype.itemsize}")
    first = int(np.argmax(differs))
    index = tuple(int(i) for i in np.unravel_index(first, reference.spec.shape)) if reference.spec.shape else ()
    evidence = (
        Entry(name="reason", value="must be equal to the reference"),
        Entry(name="first_wrong_index", value=str(list(index))),
        Entry(name="got", value=str(got[first])),
        Entry(name="expected", value=str(reference.declared[first])),
        Entry(name="wrong_elements", value=f"{int(np.count_nonzero(differs))} of {got.size}"),
    )
    return Verdict(status=Status.WRONG_RESULT, evidence=evidence)


def _judge_special(got: Array, reference: Reference) -> Verdict:
    """A reference with NaN or infinities: same pattern, and the limits on what is finite in both."""
    dtype = reference.spec.dtype
    mine, theirs = widened(got, dtype), widened(reference.declared, dtype)
    pattern = (np.isnan(mine) == np.isnan(theirs)) & (np.isinf(mine) == np.isinf(theirs))
    pattern &= ~np.isinf(theirs) | (np.sign(mine) == np.sign(theirs))
    if not pattern.all():
        first = int(np.argmin(pattern))
        evidence = (
            Entry(name="reason", value="NaN or infinity where the reference has none, or the reverse"),
            Entry(name="first_wrong_index", value=str([int(i) for i in np.unravel_index(first, reference.spec.shape)])),
        )
        return Verdict(status=Status.WRONG_RESULT, evidence=evidence)
    keep = np.isfinite(theirs) & np.isfinite(reference.exact)
    rmse, top = errors(mine[keep], reference.exact[keep])
    if rmse <= rmse_limit(reference) and top <= max_limit(reference):
        return Verdict(evidence=_numbers(reference, rmse, top))
    entries = (Entry(name="reason", value="error above the limit"), *_numbers(reference, rmse, top))
    return Verdict(status=Status.WRONG_RESULT, evidence=entries)
