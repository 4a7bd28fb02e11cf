"""C++ names of element types, in registers and in memory, and what is between the two (pure)."""

from __future__ import annotations

from shared.dtypes import DType

SCALAR = {
    DType.F32: "float", DType.F64: "double", DType.I8: "int8_t", DType.I16: "int16_t", DType.U8: "uint8_t",
    DType.I32: "int", DType.I64: "int64_t", DType.BOOL: "bool",
}  # fmt: skip
"""Of values that are computed with."""
MEMORY = {**SCALAR, DType.F16: "ke_f16", DType.BF16: "ke_bf16", DType.BOOL: "uint8_t"}
HALVES = (DType.F16, DType.BF16)


def read(memory: DType, text: str, dtype: DType) -> str:
    """An element of ``memory`` as a value of ``dtype``."""
    if memory in HALVES:
        return f"ke_float({text})"
    if memory is DType.BOOL:
        return f"({text} != 0)"
    return text if memory is dtype else f"({SCALAR[dtype]}){text}"


def written(memory: DType, text: str, dtype: DType) -> str:
    """A value of ``dtype`` as an element of ``memory``."""
    if memory in HALVES:
        return f"ke_narrow<{MEMORY[memory]}>({text if dtype is DType.F32 else f'(float)({text})'})"
    if memory is DType.BOOL:
        return f"(uint8_t)({text} ? 1 : 0)"
    return text if memory is dtype else f"({MEMORY[memory]})({text})"
