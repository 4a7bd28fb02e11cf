"""Element types as the C ABI numbers them (pure)."""

from __future__ import annotations

from enum import StrEnum


class DType(StrEnum):
    F32 = "float32"
    F64 = "float64"
    F16 = "float16"
    BF16 = "bfloat16"
    I8 = "int8"
    I16 = "int16"
    I32 = "int32"
    I64 = "int64"
    U8 = "uint8"
    BOOL = "bool"

    @property
    def code(self) -> int:
        """``enum KeDtype`` of ``ke_abi.h``."""
        return list(DType).index(self)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return _SIZES[self]

    @property
    def floating(self) -> bool:
        return self in (DType.F32, DType.F64, DType.F16, DType.BF16)

    @property
    def c_type(self) -> str:
        """C++ type of one element (16-bit floats travel as ``uint16_t``)."""
        return _C_TYPES[self]


_SIZES = {
    DType.F32: 4, DType.F64: 8, DType.F16: 2, DType.BF16: 2, DType.I8: 1, DType.I16: 2, DType.I32: 4, DType.I64: 8,
    DType.U8: 1, DType.BOOL: 1,
}  # fmt: skip
_C_TYPES = {
    DType.F32: "float", DType.F64: "double", DType.F16: "uint16_t", DType.BF16: "uint16_t", DType.I8: "int8_t",
    DType.I16: "int16_t", DType.I32: "int32_t", DType.I64: "int64_t", DType.U8: "uint8_t", DType.BOOL: "uint8_t",
}  # fmt: skip
