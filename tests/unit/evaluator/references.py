"""References made without torch: truth in fp64, the declared precision rounded from an honest fp32 computation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evaluator_svc.arrays import Array
from evaluator_svc.cases import Reference, make_reference
from evaluator_svc.tensors import TensorSpec
from shared.dtypes import DType

Compute = Callable[[Array], Array]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def row_sum(x: Array) -> Array:
    return x.sum(axis=-1)


def normalised(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + x.dtype.type(1e-5))


def square(x: Array) -> Array:
    return x @ x.T


def mean_loss(x: Array) -> Array:
    return np.asarray(np.log(np.exp(x).sum(axis=-1)).mean())


OPERATORS: dict[str, Compute] = {
    "softmax": softmax,
    "row_sum": row_sum,
    "normalised": normalised,
    "square": square,
    "mean_loss": mean_loss,
}


def inputs(seed: int = 1, rows: int = 48, columns: int = 320) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def reference(compute: Compute, x: Array) -> Reference:
    exact = np.asarray(compute(x.astype(np.float64)))
    declared = np.asarray(compute(x)).astype(np.float32)
    low = np.asarray(compute(x.astype(np.float16).astype(np.float32))).astype(np.float16).astype(np.float32)
    spec = TensorSpec(shape=exact.shape, dtype=DType.F32)
    return make_reference(spec, exact.reshape(-1), declared.reshape(-1), None, [("float16", low.reshape(-1))])


def integers(values: Array) -> Reference:
    flat = np.ascontiguousarray(values, dtype=np.int64).reshape(-1)
    return make_reference(TensorSpec(shape=values.shape, dtype=DType.I64), flat, flat, None, [])
