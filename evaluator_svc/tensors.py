"""Tensors as the evaluator passes them between processes: a spec and contiguous raw bytes (pure)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared.dtypes import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape and element type of a contiguous row-major tensor."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize
