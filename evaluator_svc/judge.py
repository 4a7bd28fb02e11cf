"""The verdict on one output: its bytes against its reference (pure).

Every rule must hold; ``limits.py`` has the numbers and where they come from, ``precision.py`` the lower precisions.

===================  =====================================================================================
container            the controller lays out the bytes that are judged: shape, dtype and contiguity are its own
finite pattern       NaN and infinities where, and of the sign, the declared-precision reference has them
root mean square     at most a multiple of the reference's + a floor in ulp of the output's scale
maximum              the same, of the largest error; no share of elements is exempt
terms                of a sum of products, elementwise: at most ``(c sqrt(K) + K) u |A||B|``
integers             a sum that is an integer in any order is nearer to it than to any other
lower precision      at most half the error of the nearest lower precision, where that is informative
integer dtypes       equal; in ``bitwise`` mode floating outputs, too
===================  =====================================================================================

Comparing takes chunks of constant size: no more memory for a large output than for a small one. An output is judged
where it and its reference lie, in this process' memory or on a device (``arrays.py``). NaN is no wildcard. An explicit
mask (``Demand.FINITE_PART``) leaves out what the reference itself, fed with NaN, has not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import Array, Bytes, chunk, flat, on_host
from evaluator_svc.cases import Demand, Reference, elements, errors, widened
from evaluator_svc.layers import Layer, caught
from evaluator_svc.limits import HALF, max_limit, rmse_limit, terms_share
from evaluator_svc.nearness import rows_near
from evaluator_svc.precision import as_bad_as_lower, is_of_lower, nearest
from shared.dtypes import DType
from shared.events import Entry, Status

NOT_PROPAGATED = "not_finite_elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """PASSED, or why not. Evidence has the numbers; its first entry names the layer that caught a failure."""

    status: Status = Status.PASSED
    evidence: tuple[Entry, ...] = ()

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED


QUIET = np.errstate(invalid="ignore", over="ignore")
"""Wrong outputs may hold anything; infinities and NaN in a difference are findings, not accidents."""


@QUIET
def judge(reference: Reference, data: Bytes, *, bitwise: bool = False) -> Verdict:
    """Judge raw output bytes of ``reference.spec``; ``bitwise`` demands the declared reference's very bytes."""
    dtype = reference.spec.dtype
    got = elements(data, dtype)
    if got.size != reference.exact.size:
        return _refused(Layer.CONTRACT, Status.WRONG_SHAPE, f"{got.size} elements, expected {reference.exact.size}")
    if bitwise or reference.demand is Demand.BITS or not dtype.floating:
        return _equal(got, reference)
    if not reference.finite:
        return _judge_special(got, reference)
    rmse, top = errors(got, reference.exact, dtype)
    if not math.isfinite(top):
        return _wrong(got, reference, rmse, top, "output is not finite where the reference is")
    if not (rmse <= rmse_limit(reference) and top <= max_limit(reference)):
        if is_of_lower(got, reference, rmse, top):
            return _downgrade(reference, rmse, top)
        return _wrong(got, reference, rmse, top, "error above the limit")
    if reference.demand is Demand.INTEGERS and not top < HALF:
        return _wrong(got, reference, rmse, top, "not the integer that any order of summation gives")
    if reference.magnitude is not None and _beyond_terms(got, reference):
        return _wrong(got, reference, rmse, top, "error above what any order of summation gives")
    if as_bad_as_lower(reference, rmse):
        return _downgrade(reference, rmse, top)
    return Verdict(evidence=_numbers(reference, rmse, top))


def within(reference: Reference, data: Bytes) -> bool:
    """The quick bound for timed calls: every element near the declared reference. Implied by ``judge`` passing."""
    return bool(near(reference, flat(data)[None])[0])


@QUIET
def near(reference: Reference, rows: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """``within`` for each of many outputs: rows of bytes, each contiguous. The answer lies in this process' memory."""
    dtype, count = reference.spec.dtype, rows.shape[0]
    if not rows.shape[1]:
        return np.ones(count, dtype=np.bool_)
    if not dtype.floating or reference.demand is Demand.BITS:
        kind = f"u{dtype.itemsize}"
        right = reference.declared.view(kind)
        return np.array([bool(np.array_equal(row.view(kind), right)) for row in rows], dtype=np.bool_)
    if not reference.finite or reference.demand is not Demand.LIMITS:
        return np.array([judge(reference, row).passed for row in rows], dtype=np.bool_)
    compared: Any = np.float64 if dtype is DType.F64 else np.float32
    limit = compared(max_limit(reference) + reference.max_error) * compared(1.001)
    return rows_near(rows, reference.declared, dtype, limit)


def _chunks(got: Array, reference: Reference) -> Iterator[tuple[int, Array, Array, Array]]:
    """(start, output, truth, declared) in float64, a chunk at a time."""
    dtype, step = reference.spec.dtype, chunk(got)
    for start in range(0, got.size, step):
        part = slice(start, start + step)
        yield start, widened(got[part], dtype), reference.exact[part], widened(reference.declared[part], dtype)


def _beyond_terms(got: Array, reference: Reference) -> bool:
    """Rule "terms". It binds only where the reference keeps to it: not where an intermediate is rounded, too."""
    assert reference.magnitude is not None
    share, beyond = terms_share(reference), False
    for start, mine, exact, declared in _chunks(got, reference):
        bound = share * (reference.magnitude[start : start + mine.size].astype(np.float64) + np.abs(exact))
        if bool((np.abs(declared - exact) > bound).any()):
            return False
        beyond |= bool((np.abs(mine - exact) > bound).any())
    return beyond


def _judge_special(got: Array, reference: Reference) -> Verdict:
    """A reference with NaN or infinities: its pattern, and the limits on what is finite in it."""
    dtype, told = reference.spec.dtype, reference.demand is Demand.FINITE_PART
    elsewhere = 0
    for start, mine, exact, theirs in _chunks(got, reference):
        pattern = (np.isnan(mine) == np.isnan(theirs)) & (np.isinf(mine) == np.isinf(theirs))
        pattern &= ~np.isinf(theirs) | (np.sign(mine) == np.sign(theirs))
        if told:
            free = ~(np.isfinite(theirs) & np.isfinite(exact))
            elsewhere += int(np.count_nonzero(~pattern & free))
            pattern |= free
        if not bool(pattern.all()):
            index = _index(start + int(np.argmin(pattern)), reference)
            reason = "NaN or infinity where the reference has none, or the reverse"
            return _refused(Layer.JUDGE, Status.WRONG_RESULT, reason, Entry(name="first_wrong_index", value=index))
    rmse, top = errors(got, reference.exact, dtype, among=reference.declared, kind=dtype)
    numbers = _numbers(reference, rmse, top)
    if not (rmse <= rmse_limit(reference) and top <= max_limit(reference)):
        return _refused(Layer.JUDGE, Status.WRONG_RESULT, "error above the limit", *numbers)
    if elsewhere:
        said = f"{elsewhere} elements, of which the reference makes NaN or infinity, hold something else"
        numbers = (*numbers, Entry(name=NOT_PROPAGATED, value=said))
    return Verdict(evidence=numbers)


def _equal(got: Array, reference: Reference) -> Verdict:
    """Exact equality of stored elements."""
    kind, first, count, step = f"u{got.dtype.itemsize}", -1, 0, chunk(got)
    for start in range(0, got.size, step):
        part = slice(start, start + step)
        differs = got[part].view(kind) != reference.declared[part].view(kind)
        here = int(np.count_nonzero(differs))
        count += here
        if first < 0 and here:
            first = start + int(np.argmax(differs))
    if first < 0:
        return Verdict()
    return _refused(
        Layer.JUDGE,
        Status.WRONG_RESULT,
        "must be equal to the reference",
        Entry(name="first_wrong_index", value=_index(first, reference)),
        Entry(name="got", value=_shown(got, first, reference)),
        Entry(name="expected", value=_shown(reference.declared, first, reference)),
        Entry(name="wrong_elements", value=f"{count} of {got.size}"),
    )


def _downgrade(reference: Reference, rmse: float, top: float) -> Verdict:
    near = nearest(reference, rmse)
    return _refused(
        Layer.PRECISION,
        Status.PRECISION_DOWNGRADE,
        f"error is that of {near.name}, the operator declares {reference.spec.dtype.value}",
        Entry(name="rmse_of_lower_precision", value=f"{near.rmse:.3e}"),
        *_numbers(reference, rmse, top),
    )


def _wrong(got: Array, reference: Reference, rmse: float, top: float, reason: str) -> Verdict:
    numbers = _numbers(reference, rmse, top)
    return _refused(Layer.JUDGE, Status.WRONG_RESULT, reason, *numbers, *_first_wrong(got, reference, top))


def _refused(layer: Layer, status: Status, reason: str, *entries: Entry) -> Verdict:
    return Verdict(status=status, evidence=(caught(layer), Entry(name="reason", value=reason), *entries))


def _numbers(reference: Reference, rmse: float, top: float) -> tuple[Entry, ...]:
    return (
        Entry(name="rmse", value=f"{rmse:.3e}"),
        Entry(name="rmse_limit", value=f"{rmse_limit(reference):.3e}"),
        Entry(name="max_error", value=f"{top:.3e}"),
        Entry(name="max_error_limit", value=f"{max_limit(reference):.3e}"),
    )


def _first_wrong(got: Array, reference: Reference, top: float) -> tuple[Entry, ...]:
    """Index, value and truth of the first element beyond the elementwise limit, and how many are."""
    limit = max_limit(reference)
    if top <= limit:
        limit = min(limit, HALF) if reference.demand is Demand.INTEGERS else top
    first, count, value, truth = -1, 0, 0.0, 0.0
    for start, mine, exact, _ in _chunks(got, reference):
        bad = ~(np.abs(mine - exact) < limit)
        here = int(np.count_nonzero(bad))
        count += here
        if first < 0 and here:
            at = int(np.argmax(bad))
            first, value, truth = start + at, float(mine[at]), float(exact[at])
    if first < 0:
        return ()
    return (
        Entry(name="first_wrong_index", value=_index(first, reference)),
        Entry(name="got", value=f"{value:.9g}"),
        Entry(name="expected", value=f"{truth:.9g}"),
        Entry(name="wrong_elements", value=f"{count} of {got.size}"),
    )


def _shown(stored: Array, at: int, reference: Reference) -> str:
    """The value of one element."""
    return str(widened(on_host(stored[at : at + 1]), reference.spec.dtype)[0])


def _index(at: int, reference: Reference) -> str:
    """Of a flat element, as a list of positions."""
    shape = reference.spec.shape
    return str([int(i) for i in np.unravel_index(at, shape)] if shape else [])
