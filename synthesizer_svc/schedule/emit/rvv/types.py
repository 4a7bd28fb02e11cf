"""Register groups of the vector extension and the C names of their types (pure)."""

from __future__ import annotations

from dataclasses import dataclass

ELEMENT_BITS = 32
REGISTERS = 32
LMULS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class RegisterGroup:
    """``lmul`` registers used as one, holding 32-bit elements."""

    lmul: int

    @property
    def name(self) -> str:
        return f"m{self.lmul}"

    @property
    def floats(self) -> str:
        return f"vfloat32m{self.lmul}_t"

    @property
    def integers(self) -> str:
        return f"vint32m{self.lmul}_t"

    @property
    def masks(self) -> str:
        return f"vbool{ELEMENT_BITS // self.lmul}_t"

    @property
    def bytes_name(self) -> str:
        """Suffix of the group of bytes with as many elements."""
        return f"u8m{self.lmul // 4}" if self.lmul >= 4 else f"u8mf{4 // self.lmul}"

    def elements(self, vlen: int) -> int:
        """VLMAX where registers have ``vlen`` bits."""
        return self.lmul * vlen // ELEMENT_BITS
