"""Element types in Triton and in torch, and the kernels that the emitters hand out (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.dtypes import DType

TL = {
    DType.F32: "tl.float32", DType.F64: "tl.float64", DType.F16: "tl.float16", DType.BF16: "tl.bfloat16",
    DType.I8: "tl.int8", DType.I16: "tl.int16", DType.I32: "tl.int32", DType.I64: "tl.int64", DType.U8: "tl.uint8",
    DType.BOOL: "tl.int1",
}  # fmt: skip
TORCH = {dtype: f"torch.{dtype.value}" for dtype in DType}
HALVES = (DType.F16, DType.BF16)


def power_of_two(n: int) -> int:
    """The least power of two that is not below ``n``."""
    return 1 << max(n - 1, 0).bit_length()


def blocks(n: int, size: int) -> int:
    """Blocks of ``size`` that cover ``n``."""
    return -(-n // size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One ``@triton.jit`` function and its launch on a grid of one dimension.

    Its arguments are ``buffers``, then ``descriptors``: name and the text that makes one.
    """

    name: str
    text: str
    buffers: tuple[str, ...]
    programs: int
    warps: int
    stages: int = 1
    descriptors: tuple[tuple[str, str], ...] = ()
