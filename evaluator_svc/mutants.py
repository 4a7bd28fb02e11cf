"""The standard mutants: plausible wrong answers that a usable check must reject (pure), made where the reference lies.

Each takes the declared reference (values as float64 or integers, in the output's shape) and returns a wrong answer,
or the truth itself where the mutation changes nothing (a row swap of equal rows), which is then no mutant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from evaluator_svc.arrays import Array, contiguous, equal, flat
from evaluator_svc.cases import Reference, narrowed, widened
from shared.dtypes import DType

Mutant = Callable[[Array], Array]


def _zeros(y: Array) -> Array:
    return np.zeros_like(y)


def _mean(y: Array) -> Array:
    return np.full_like(y, y.dtype.type(float(y.mean())))


def _without_last_rows(y: Array) -> Array:
    """The last tile never written: a sixteenth of the rows, at least one element, left at zero."""
    rows = y.reshape(y.shape[0], -1).copy() if y.ndim else y.reshape(1, 1).copy()
    rows[-max(1, rows.shape[0] // 16) :] = 0
    return rows.reshape(y.shape)


def _without_last_element(y: Array) -> Array:
    line = y.reshape(-1).copy()
    line[-1] = 0
    return line.reshape(y.shape)


def _without_middle_rows(y: Array) -> Array:
    """A tile in the middle never written."""
    rows = y.reshape(y.shape[0], -1).copy() if y.ndim else y.reshape(1, 1).copy()
    middle = rows.shape[0] // 2
    rows[middle : middle + max(1, rows.shape[0] // 16)] = 0
    return rows.reshape(y.shape)


def _neighbouring_rows_swapped(y: Array) -> Array:
    """In the middle: an index off by one in one place."""
    if y.ndim == 0 or y.shape[0] < 4:
        return y
    out, middle = y.copy(), y.shape[0] // 2
    out[middle], out[middle + 1] = y[middle + 1], y[middle]
    return out


def _transposed(y: Array) -> Array:
    """Written in the order of the other of the last two axes."""
    if y.ndim < 2:
        return y
    return contiguous(np.swapaxes(y, -1, -2)).reshape(y.shape)


def _wrong_axis(y: Array) -> Array:
    """Every row is the first: the reduction or the broadcast went along the other axis."""
    return np.broadcast_to(y[:1], y.shape).copy() if y.ndim else y


def _one_element_wrong(y: Array) -> Array:
    """By as much as the largest of all."""
    line = y.reshape(-1).copy()
    line[line.size // 2] += np.abs(line).max() + 1 if line.dtype.kind == "f" else 1
    return line.reshape(y.shape)


def _filled(value: float) -> Mutant:
    """A checker that takes NaN for "don't care" accepts this."""
    return lambda y: np.full_like(y, value)


def _one(value: float) -> Mutant:
    def mutate(y: Array) -> Array:
        line = y.reshape(-1).copy()
        line[line.size // 3] = value
        return line.reshape(y.shape)

    return mutate


def _rows_swapped(y: Array) -> Array:
    if y.ndim == 0 or y.shape[0] < 2:
        return y
    out = y.copy()
    out[0], out[-1] = y[-1], y[0]
    return out


def _shifted_by_one(y: Array) -> Array:
    return np.roll(y.reshape(-1), 1).reshape(y.shape)


def _shifted_back_by_one(y: Array) -> Array:
    return np.roll(y.reshape(-1), -1).reshape(y.shape)


def _scaled(step: float) -> Mutant:
    return lambda y: y * (1 + step)


def _offset(step: float) -> Mutant:
    """A dropped epsilon or bias: a step of the output's deviation, or of a tenth of its size where that is larger."""

    def mutate(y: Array) -> Array:
        size = float(np.sqrt((y * y).mean()))
        return y + step * max(float(y.std()), size / 10)

    return mutate


def _negated(y: Array) -> Array:
    return -y


def _half_precision(y: Array) -> Array:
    with np.errstate(over="ignore"):
        return y.astype(np.float16).astype(y.dtype)


def _bfloat16(y: Array) -> Array:
    bits = y.astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x8000) & np.uint32(0xFFFF0000)).view(np.float32).astype(y.dtype)
    return np.where(np.isnan(y), y, rounded)  # a GPU's NaN would be carried into the sign


STANDARD: dict[str, Mutant] = {
    "zeros": _zeros,
    "mean of the output everywhere": _mean,
    "last rows missing": _without_last_rows,
    "last element missing": _without_last_element,
    "middle rows missing": _without_middle_rows,
    "two rows swapped": _rows_swapped,
    "two neighbouring rows swapped": _neighbouring_rows_swapped,
    "transposed": _transposed,
    "every row is the first": _wrong_axis,
    "one element wrong": _one_element_wrong,
    "shifted by one element": _shifted_by_one,
    "shifted back by one element": _shifted_back_by_one,
    "sign flipped": _negated,
}
"""For every dtype."""
STEPS = {DType.F64: 1e-3, DType.F32: 1e-3, DType.F16: 0.05, DType.BF16: 0.4}
"""Relative size of the small floating mutants: a hundred units in the last place of the 16-bit types."""
FLOATING: dict[str, Mutant] = {
    "NaN everywhere": _filled(np.nan),
    "one NaN": _one(np.nan),
    "one infinity": _one(np.inf),
}
ROUNDED = "rounded to "
"""Begins the names of roundings, which change nothing where a type has no more bits left, as among denormals."""
SINGLE: dict[str, Mutant] = {f"{ROUNDED}float16": _half_precision, f"{ROUNDED}bfloat16": _bfloat16}
"""For float32 and float64 only: 16-bit operators round there by right."""


def mutants(reference: Reference, without: Collection[str] = ()) -> Iterator[tuple[str, Array]]:
    """``(name, the output's bytes, flat)`` of every mutant that differs from the declared reference, which is where
    they lie, names ``without`` left out.
    """
    dtype = reference.spec.dtype
    truth = widened(reference.declared, dtype).reshape(reference.spec.shape)
    chosen = dict(STANDARD)
    if dtype.floating:
        step = STEPS[dtype]
        chosen |= FLOATING
        chosen |= {f"scaled by {1 + step:g}": _scaled(step), f"offset by {step:g} of its deviation": _offset(step)}
    if dtype in (DType.F32, DType.F64):
        chosen |= SINGLE
    if dtype is DType.F16:
        chosen[f"{ROUNDED}bfloat16"] = _bfloat16
    original = flat(narrowed(truth, dtype))  # as mutants go there and back: a GPU makes every NaN the same one
    for name, mutate in chosen.items():
        if name in without:
            continue
        with np.errstate(invalid="ignore", over="ignore"):  # a case may hold NaN
            data = flat(narrowed(mutate(truth), dtype))
        if not equal(data, original):
            yield name, data
