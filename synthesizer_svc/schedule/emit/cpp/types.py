"""C++ names of scalar and vector types (pure).

A group computes on ``lanes`` elements at a time: ``KE_W`` (those of a float vector) or, when it has float64
arithmetic, ``KE_WD``. Every type then has vectors of that many lanes; masks are integers as wide as the lane.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.dtypes import DType

SCALAR = {DType.F32: "float", DType.F64: "double", DType.I32: "int32_t", DType.I64: "int64_t", DType.BOOL: "bool"}
_WIDE = {DType.F32: "vf", DType.F64: "vdd", DType.I32: "vi", DType.I64: "vll", DType.BOOL: "vi"}
_DOUBLE = {DType.F32: "vfh", DType.F64: "vd", DType.I32: "vih", DType.I64: "vl", DType.BOOL: "vl"}
MEMORY_NAMES = {DType.F16: "KeF16", DType.BF16: "KeBf16", DType.BOOL: "KeBool"}
"""Element types in memory that are not what C++ calls them."""
FLOATS, DOUBLES = "KE_W", "KE_WD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """How many lanes a group's vectors have, and the names of its types."""

    count: int
    doubles: bool

    @property
    def name(self) -> str:
        return DOUBLES if self.doubles else FLOATS

    def vector(self, dtype: DType) -> str:
        return (_DOUBLE if self.doubles else _WIDE)[dtype]

    def native(self, dtype: DType) -> bool:
        """Whether vectors of ``dtype`` fill one register, so that vector mathematics exists for them."""
        return dtype is (DType.F64 if self.doubles else DType.F32)

    def mask_for(self, dtype: DType) -> str:
        """Integer vector that selects between vectors of ``dtype``."""
        return self.vector(DType.I64 if dtype in (DType.F64, DType.I64) else DType.I32)
