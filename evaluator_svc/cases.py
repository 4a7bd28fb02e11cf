"""Cases and references: what a kernel is given and what its outputs are judged against (pure).

A *case* is one set of input bytes with one *reference* per output. References live in the controller only, in its own
memory or on a device that it computes on: all arrays of a case lie in the same place (``arrays.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluator_svc.arrays import Array, Bytes, chunk, contiguous, flat, largest, squares
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from shared.contract import Contract
from shared.dtypes import DType

if TYPE_CHECKING:
    from evaluator_svc.properties import Relation

UNIT_ROUNDOFF = {DType.F64: 2.0**-53, DType.F32: 2.0**-24, DType.F16: 2.0**-11, DType.BF16: 2.0**-8}
_NUMPY: dict[DType, str] = {
    DType.F32: "<f4", DType.F64: "<f8", DType.F16: "<f2", DType.BF16: "<u2", DType.I8: "i1", DType.I16: "<i2",
    DType.I32: "<i4", DType.I64: "<i8", DType.U8: "u1", DType.BOOL: "u1",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LowPrecision:
    """What a lower precision makes of this case: its error against fp64."""

    name: str
    rmse: float
    max_error: float
    whole: bool = True
    """Every step in it. Otherwise only the inputs were rounded to it, which long serial sums may lose as well: then it
    tells what an error is, and refuses nothing by itself."""


class Demand(StrEnum):
    """What an output is held to, beyond the finite pattern of the declared reference."""

    LIMITS = "limits"
    """Errors within the limits."""
    BITS = "bits"
    """The declared reference's very bytes."""
    INTEGERS = "integers"
    """The limits, and every element nearer to the true integer than to any other."""
    FINITE_PART = "finite part"
    """Inputs hold NaN and infinities: what the reference has finite is within the limits, the rest is only told."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Truth for one output. ``exact`` is fp64 (or the integers themselves), ``declared`` the trusted same-precision
    answer, both flat. Errors are absolute; ``rmse`` and ``max_error`` are the larger of what the declared precision
    makes on the inputs and what it makes on inputs an ulp away (so an ill-conditioned case blames nobody).

    For operators that declare float64, ``exact`` is of the same precision as ``declared``: their truth is as good as a
    trusted implementation's, no better, and the limits are conditioning and floors alone.
    """

    spec: TensorSpec
    exact: Array
    declared: Array
    finite: bool
    rmse: float = 0.0
    max_error: float = 0.0
    scale_rms: float = 0.0
    scale_max: float = 0.0
    low: tuple[LowPrecision, ...] = ()
    held_out: bool = False
    """Of values unlike the operator's own, on which even a right kernel may be less precise."""
    demand: Demand = Demand.LIMITS
    magnitude: Array | None = None
    """``|A||B|`` of a sum of products, elementwise, float32: what its operands' absolute values give."""
    terms: float = 0.0
    """Products in one such sum."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """``name`` says which seed or held-out transform; ``public`` when it is the operator's own distribution."""

    name: str
    public: bool
    specs: tuple[TensorSpec, ...]
    inputs: tuple[NDArray[np.uint8], ...]
    references: tuple[Reference, ...]
    in_place: tuple[int, ...] = ()
    """Inputs whose new values are the last outputs: those begin as a copy of the input."""
    special: bool = False
    """Inputs hold NaN and infinities that the operator's own have not."""
    core: bool = True
    """Held against every kernel; the others are drawn from."""
    seed: int = 0
    """The secret it was drawn under."""

    @property
    def nbytes(self) -> int:
        """Memory held: inputs, exact and declared outputs."""
        held = sum(data.nbytes for data in self.inputs)
        for r in self.references:
            held += r.exact.nbytes + r.declared.nbytes + (0 if r.magnitude is None else r.magnitude.nbytes)
        return held


@dataclass(frozen=True, kw_only=True)
class Suite:
    """All cases of one operator under one secret. ``shape_case`` is only for kernels that guard their shapes."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    cases: tuple[Case, ...]
    shape_case: Case | None = None
    flops: int | None = None
    skipped: tuple[str, ...] = field(default=())
    signature: Signature = field(default_factory=Signature)
    """What kernels hosted by Python are constructed and called with besides tensors."""
    relations: tuple[Relation, ...] = ()
    contract: Contract = field(default_factory=Contract)

    @property
    def public(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.public)

    @property
    def bytes_min(self) -> int:
        """Compulsory traffic: every input read once, every output written once."""
        return sum(spec.nbytes for spec in (*self.inputs, *self.outputs))


def elements(data: Bytes, dtype: DType) -> Array:
    """Raw bytes as stored elements, without a copy, where they are (bf16 as its 16 bits)."""
    return flat(data).view(_NUMPY[dtype])


def widened(stored: Array, dtype: DType) -> Array:
    """Stored elements as float64 values; integers as they are."""
    if dtype is DType.BF16:
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64) if dtype.floating else stored


def narrowed(values: Array, dtype: DType) -> Array:
    """Values as stored elements, rounded to nearest (bf16: its 16 bits)."""
    if dtype is DType.BF16:
        single = contiguous(values.astype(np.float32, copy=False))
        bits = single.view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        # A GPU's NaN has every bit set, and rounding would carry it into the sign.
        return np.where(np.isnan(single), bits >> 16, rounded).astype(np.uint16)
    with np.errstate(over="ignore"):
        return contiguous(values).astype(_NUMPY[dtype])


def make_reference(
    spec: TensorSpec,
    exact: Array,
    declared: Array,
    nudged: Array | None,
    low: Sequence[tuple[str, Array]],
    *,
    held_out: bool = False,
    demand: Demand = Demand.LIMITS,
    magnitude: Array | None = None,
    terms: float = 0.0,
) -> Reference:
    """Measure the trusted precisions against fp64. ``low`` arrays are float32; all are flat and in stored form.

    A ``low`` name that begins with ``inputs in`` is of a run whose inputs alone were rounded.
    """
    if not spec.dtype.floating:
        demand = Demand.BITS if demand is Demand.BITS else Demand.LIMITS
        return Reference(spec=spec, exact=exact, declared=declared, finite=True, held_out=held_out, demand=demand)
    finite, total, top, count = _scale(exact, declared, spec.dtype)
    among = None if finite else declared
    measured = errors(declared, exact, spec.dtype, among=among, kind=spec.dtype)
    around = errors(nudged, exact, spec.dtype) if nudged is not None and finite else measured
    rms = float(np.sqrt(total / max(count, 1)))
    if magnitude is not None and finite:
        # The natural error of a sum goes with its terms, whatever they cancel to.
        weight = 1.0 / max(terms, 1.0) ** 0.5
        rms = max(rms, weight * float(np.sqrt(squares(magnitude) / max(magnitude.size, 1))))
        top = max(top, weight * largest(magnitude))
    return Reference(
        spec=spec,
        exact=exact,
        declared=declared,
        finite=finite,
        held_out=held_out,
        rmse=max(measured[0], around[0]),
        max_error=max(measured[1], around[1]),
        scale_rms=rms,
        scale_max=top,
        low=tuple(
            LowPrecision(name=name, rmse=rmse, max_error=most, whole=not name.startswith("inputs in"))
            for name, (rmse, most) in ((name, errors(array, exact, DType.F32)) for name, array in low if finite)
        ),
        demand=demand,
        magnitude=magnitude if finite else None,
        terms=terms,
    )


def _scale(exact: Array, declared: Array, dtype: DType) -> tuple[bool, float, float, int]:
    """Whether both are finite; sum of squares, largest size and number of the elements that are finite in both."""
    total, top, count, step = 0.0, 0.0, 0, chunk(exact)
    for start in range(0, exact.size, step):
        part = exact[start : start + step]
        keep = np.isfinite(part) & np.isfinite(widened(declared[start : start + step], dtype))
        part = part[keep]
        total, top, count = total + squares(part), max(top, largest(np.abs(part))), count + part.size
    return count == exact.size, total, top, count


def errors(
    got: Array, exact: Array, dtype: DType = DType.F64, *, among: Array | None = None, kind: DType = DType.F64
) -> tuple[float, float]:
    """(root mean square, maximum) of ``got - exact``, both flat, in chunks; NaN when any difference is NaN.

    With ``among`` (stored elements of dtype ``kind``) only of those elements that are finite there and in ``exact``.
    """
    total, top, count, step = 0.0, 0.0, 0, chunk(exact)
    for start in range(0, exact.size, step):
        part, mine = exact[start : start + step], widened(got[start : start + step], dtype)
        if among is not None:
            keep = np.isfinite(part) & np.isfinite(widened(among[start : start + step], kind))
            part, mine = part[keep], mine[keep]
        difference = mine - part
        total += squares(difference)
        top = float(np.maximum(top, largest(np.abs(difference, out=difference))))
        count += difference.size
    return float(np.sqrt(total / max(count, 1))), top
