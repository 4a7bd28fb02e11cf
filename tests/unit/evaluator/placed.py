"""Outputs and references of every kind, made where ``place`` puts them: the same ones here and on a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluator_svc.arrays import Array
from evaluator_svc.cases import Case, Demand, Reference, make_reference, narrowed, widened
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType
from tests.unit.evaluator.references import softmax

SHAPE = (12, 40)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Of a reference."""

    dtype: DType
    demand: Demand = Demand.LIMITS
    special: bool = False
    terms: float = 0.0
    shape: tuple[int, ...] = SHAPE
    scale: float = 1.0


KINDS = {
    "float32": Kind(dtype=DType.F32),
    "float64": Kind(dtype=DType.F64),
    "float16": Kind(dtype=DType.F16),
    "bfloat16": Kind(dtype=DType.BF16),
    "one element": Kind(dtype=DType.F32, shape=()),
    "int64": Kind(dtype=DType.I64, scale=1000.0),
    "int32": Kind(dtype=DType.I32, scale=1000.0),
    "uint8": Kind(dtype=DType.U8, scale=200.0),
    "bool": Kind(dtype=DType.BOOL, scale=1.9),
    "bits": Kind(dtype=DType.F32, demand=Demand.BITS),
    "bits of bfloat16": Kind(dtype=DType.BF16, demand=Demand.BITS),
    "sums of products": Kind(dtype=DType.F32, terms=64.0),
    "integers in float32": Kind(dtype=DType.F32, demand=Demand.INTEGERS, scale=50.0),
    "special values": Kind(dtype=DType.F32, special=True),
    "special values in bfloat16": Kind(dtype=DType.BF16, special=True),
    "finite part": Kind(dtype=DType.F32, special=True, demand=Demand.FINITE_PART),
}


def here(array: Array) -> Array:
    return array


def truth(kind: Kind, place=here, seed: int = 1) -> Reference:
    """A reference of ``kind``, with lower precisions, whose arrays ``place`` puts somewhere."""
    drawn = np.random.default_rng(seed).standard_normal(kind.shape or (40,))
    exact = np.asarray(softmax(2 * drawn) if kind.scale == 1.0 else np.abs(np.round(kind.scale * drawn)).clip(0, 255))
    exact = exact.reshape(-1)[: max(1, int(np.prod(kind.shape)))].copy()
    if kind.special:
        exact[7], exact[101], exact[-1] = np.nan, np.inf, -np.inf
    dtype = kind.dtype
    spec = TensorSpec(shape=kind.shape, dtype=dtype)
    if not dtype.floating:
        stored = narrowed(exact, dtype)
        return make_reference(spec, place(stored), place(stored), None, [], demand=kind.demand)
    declared = narrowed(exact, dtype)
    nudged = narrowed(exact * (1 + 2.0**-22), dtype)
    lower = [(name, widened(narrowed(exact, low), low).astype(np.float32)) for name, low in LOWER]
    return make_reference(
        spec,
        place(exact.astype(np.float64)),
        place(declared),
        place(nudged),
        [(name, place(array)) for name, array in lower],
        demand=kind.demand,
        magnitude=place(np.abs(exact).astype(np.float32)) if kind.terms else None,
        terms=kind.terms,
    )


LOWER = (("float16", DType.F16), ("inputs in bfloat16", DType.BF16))


def case(kind: Kind, place=here, seed: int = 1, name: str = "case") -> Case:
    """One input of the outputs' type, one output."""
    values = np.random.default_rng(seed + 99).standard_normal(SHAPE)
    stored = narrowed(values if kind.dtype.floating else np.abs(values * 20), kind.dtype)
    return Case(
        name=name,
        public=True,
        specs=(TensorSpec(shape=SHAPE, dtype=kind.dtype),),
        inputs=(place(stored.reshape(-1).view(np.uint8)),),
        references=(truth(kind, place, seed),),
    )
