"""What an operator shows about itself, as relations between a kernel's own outputs (pure).

A *relation* needs no expected answer, so there is none to steal: related inputs are given to the kernel, and its
outputs are compared with each other. Relations are not told by an operator's name but measured on the fp64 reference
(``oracle_child/relations.py``), which must keep to them on every draw.

============  ===================================================  ============================
affine        ``f(2x - z) = 2 f(x) - f(z)`` in one input           sums, products, convolutions
homogeneous   ``f(2x) = 2**d f(x)`` in one input                   sums, ReLU, norms without eps
permuted      permuting an axis permutes an axis, or nothing       batches, reductions
shifted       ``f(x + c) = f(x)`` in one input                     softmax, layer norm
independent   other rows do not matter to a row                    batches (split and concatenate)
row sum       the last axis sums to a constant                     softmax
============  ===================================================  ============================

They are the metamorphic relations of software testing (Chen et al., Metamorphic Testing, ACM CSUR 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evaluator_svc.arrays import Array, Bytes, beside, chunk, largest
from evaluator_svc.cases import Case, elements, narrowed, widened
from evaluator_svc.limits import max_limit, rmse_limit
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

GRID_BITS = {DType.F64: 30, DType.F32: 16, DType.F16: 7, DType.BF16: 5}
"""Bits kept of an input before it is doubled, shifted and subtracted, so that all of that is exact."""
INPUTS_MAX, AXES_MAX = 4, 4
"""Inputs and axes that relations are looked for in."""
HOLDS = 1e-9
"""Deviation, as a share of the output's largest element, that fp64 may show where a relation holds."""
ELEMENTS_MAX = 1 << 24
"""Operators with larger inputs or outputs are not measured: their cases are checks enough for their time."""


class Kind(StrEnum):
    AFFINE = "affine"
    HOMOGENEOUS = "homogeneous"
    PERMUTED = "permuted"
    SHIFTED = "shifted"
    INDEPENDENT = "independent"
    ROW_SUM = "row sum"


FACTOR = {Kind.AFFINE: 8.0, Kind.PERMUTED: 2.0, Kind.SHIFTED: 16.0, Kind.INDEPENDENT: 2.0}
"""Of the limit of one element: outputs that add up, and the larger values of a shifted or doubled input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """``where``: (input, axis) pairs it is about; ``axis`` of ``output`` that is permuted (None: nothing changes)."""

    kind: Kind
    where: tuple[tuple[int, int], ...] = ()
    output: int = 0
    axis: int | None = None
    degree: int = 0
    constant: float = 0.0

    @property
    def name(self) -> str:
        """For the ledger and the verdict."""
        if self.kind is Kind.ROW_SUM:
            return f"output {self.output} sums to a constant along its last axis"
        inputs = " and ".join(f"input {index}" for index, _ in self.where)
        if self.kind in (Kind.AFFINE, Kind.SHIFTED):
            return f"{'affine in' if self.kind is Kind.AFFINE else 'unchanged by a shift of'} {inputs}"
        if self.kind is Kind.HOMOGENEOUS:
            return f"homogeneous of degree {self.degree} in {inputs}"
        axes = " and ".join(f"axis {axis} of input {index}" for index, axis in self.where)
        if self.kind is Kind.INDEPENDENT:
            return f"rows of output {self.output} depend on their own rows along {axes}"
        moved = "unchanged" if self.axis is None else f"permuted along axis {self.axis}"
        return f"output {self.output} {moved} when {axes} is permuted"

    def variants(self, case: Case, seed: int) -> list[list[Array]]:
        """Related inputs, each a list of stored arrays, where the case lies; at most three of them."""
        given = [
            elements(data, spec.dtype).reshape(spec.shape) for data, spec in zip(case.inputs, case.specs, strict=True)
        ]
        draw = np.random.default_rng(seed)
        if self.kind in (Kind.PERMUTED, Kind.INDEPENDENT):
            extent = case.specs[self.where[0][0]].shape[self.where[0][1]]
            order, keep = _order(seed, extent), _kept(seed, extent)
            moved = {
                index: given[index].take(beside(order, given[index]), axis=axis)
                if self.kind is Kind.PERMUTED
                else _mixed(given[index], order, keep, axis)
                for index, axis in self.where
            }
            return [given, [moved.get(index, one) for index, one in enumerate(given)]]
        if self.kind is Kind.ROW_SUM:
            return [given]
        index, dtype = self.where[0][0], case.specs[self.where[0][0]].dtype
        x, step = _on_grid(widened(given[index], dtype), dtype)
        if self.kind is Kind.HOMOGENEOUS:
            changed = [x, 2 * x]
        elif self.kind is Kind.SHIFTED:
            changed = [x, x + step * 2.0 ** (GRID_BITS[dtype] - 1)]
        else:
            z = x.reshape(-1)[beside(draw.permutation(x.size), x)].reshape(x.shape)
            changed = [x, z, 2 * x - z]
        return [[narrowed(value, dtype) if i == index else one for i, one in enumerate(given)] for value in changed]

    def deviation(self, outputs: Sequence[Array], spec: TensorSpec, seed: int) -> float:
        """How far the stored outputs of the variants are from keeping to it; NaN where they hold NaN."""
        shape = spec.shape or (1,)
        ys, worst = [one.reshape(shape) for one in outputs], 0.0
        step = max(1, chunk(ys[0]) // max(1, ys[0].size // shape[0]))
        for start in range(0, shape[0], step):
            part = slice(start, min(start + step, shape[0]))
            difference = self._difference(ys, part, spec.dtype, seed)
            worst = float(np.maximum(worst, largest(np.abs(difference))))
        return worst

    def _difference(self, ys: Sequence[Array], part: slice, dtype: DType, seed: int) -> Array:
        first = widened(ys[0][part], dtype)
        if self.kind is Kind.ROW_SUM:
            sums: Array = first.sum(axis=-1) - self.constant
            return sums
        last = widened(ys[-1][part], dtype)
        if self.kind is Kind.AFFINE:
            return _minus(last, 2 * first - widened(ys[1][part], dtype))
        if self.kind is Kind.HOMOGENEOUS:
            return _minus(last, 2.0**self.degree * first)
        if self.kind is Kind.INDEPENDENT:
            keep = beside(_kept(seed, ys[0].shape[0])[part], last)
            return _minus(last[keep], first[keep])
        if self.kind is Kind.PERMUTED and self.axis is not None:
            order = beside(_order(seed, ys[0].shape[self.axis]), last)
            moved = ys[0][order[part]] if self.axis == 0 else ys[0][part].take(order, axis=self.axis)
            return _minus(last, widened(moved, dtype))
        return _minus(last, first)


def broken(relation: Relation, case: Case, given: Sequence[Sequence[Bytes]], seed: int) -> str | None:
    """Why the outputs ``given`` for the variants of ``case`` do not keep to ``relation``; None when they do."""
    reference = case.references[relation.output]
    spec = reference.spec
    with np.errstate(invalid="ignore", over="ignore"):
        found = relation.deviation([elements(one[relation.output], spec.dtype) for one in given], spec, seed)
    if not spec.dtype.floating:
        limit = 0.0
    elif relation.kind is Kind.ROW_SUM:
        limit = 2.0 * spec.shape[-1] * rmse_limit(reference) + max_limit(reference)
    elif relation.kind is Kind.HOMOGENEOUS:
        limit = 2.0 * (1.0 + 2.0**relation.degree) * max_limit(reference)
    else:
        limit = FACTOR[relation.kind] * max_limit(reference)
    return None if found <= limit else f"off by {found:.3e}, at most {limit:.3e} is rounding"


def hypotheses(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> Iterator[list[Relation]]:
    """What may hold for an operator of these shapes; each list is about the same related inputs."""
    floating = [index for index, spec in enumerate(inputs) if spec.dtype.floating][:INPUTS_MAX]
    smooth = [index for index, spec in enumerate(outputs) if spec.dtype.floating]
    for index in floating:
        at = ((index, 0),)
        yield [Relation(kind=Kind.AFFINE, where=at, output=output) for output in smooth]
        yield [
            Relation(kind=Kind.HOMOGENEOUS, where=at, output=output, degree=degree)
            for output in smooth
            for degree in range(4)
        ]
        yield [Relation(kind=Kind.SHIFTED, where=at, output=output) for output in smooth]
    for where in _groups(inputs):
        extent = inputs[where[0][0]].shape[where[0][1]]
        yield [
            Relation(kind=Kind.PERMUTED, where=where, output=output, axis=axis)
            for output, spec in enumerate(outputs)
            for axis in (*(a for a, length in enumerate(spec.shape[:AXES_MAX]) if length == extent), None)
        ]
        if all(axis == 0 for _, axis in where):
            rows = [output for output, spec in enumerate(outputs) if spec.shape[:1] == (extent,)]
            yield [Relation(kind=Kind.INDEPENDENT, where=where, output=output, axis=0) for output in rows]
    wide = [output for output in smooth if len(outputs[output].shape) > 1]
    yield [Relation(kind=Kind.ROW_SUM, output=output) for output in wide]


def _groups(inputs: Sequence[TensorSpec]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Axes to permute together: one, two of equal extent in two inputs, or the leading ones of all."""
    axes = [
        (index, axis, extent)
        for index, spec in enumerate(inputs[:INPUTS_MAX])
        for axis, extent in enumerate(spec.shape[:AXES_MAX])
        if extent > 1
    ]
    for index, axis, _ in axes:
        yield ((index, axis),)
    for first, axis, extent in axes:
        for second, other, length in axes:
            if first < second and extent == length:
                yield ((first, axis), (second, other))
    leading = [(index, 0) for index, axis, extent in axes if axis == 0 and extent == inputs[0].shape[:1][0]]
    if len(leading) > 2:
        yield tuple(leading)


def _on_grid(x: Array, dtype: DType) -> tuple[Array, float]:
    """``x`` rounded to a grid of ``GRID_BITS`` under its largest power of two, and the grid's step."""
    top = largest(np.abs(x))
    step = 2.0 ** (np.ceil(np.log2(top)) - GRID_BITS[dtype]) if top > 0 else 2.0 ** -GRID_BITS[dtype]
    return np.round(x / step) * step, float(step)


def _order(seed: int, extent: int) -> Array:
    """A permutation of two or more that moves every element: an identity would show a relation that does not hold."""
    draw = np.random.default_rng(seed)
    order = draw.permutation(extent)
    # A cycle through all elements in a drawn order.
    moved = np.empty_like(order)
    moved[order] = np.roll(order, 1)
    return moved


def _kept(seed: int, extent: int) -> Array:
    """Which rows stay: about half of them, at least one, not all."""
    draw = np.random.default_rng((seed, 1))
    keep = draw.random(extent) < 0.5
    stays, goes = draw.permutation(extent)[:2]
    keep[stays], keep[goes] = True, False
    return keep


def _mixed(x: Array, order: Array, keep: Array, axis: int) -> Array:
    """``x`` with the rows that are not kept replaced by others of it."""
    shape = [1] * x.ndim
    shape[axis] = -1
    return np.where(beside(keep.reshape(shape), x), x, x.take(beside(order, x), axis=axis))


def _minus(one: Array, other: Array) -> Array:
    """The difference; for integers and booleans whether they differ."""
    return one - other if one.dtype.kind == "f" else (one != other).astype(np.float64)
