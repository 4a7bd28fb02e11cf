"""What a contraction emitter is asked for: extents, strides, windows and the callbacks that fuse into it (pure).

A contraction is ``C[b, m, n] = sum_k A[b, m, k] * B[b, k, n]``. All extents and strides are numbers: a kernel is
specialised for its shapes. Vectors of the emitted code run along ``n``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal

from shared.dtypes import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Affine access of one operand, strides in elements; 0 broadcasts.

    ``batch`` has one stride per batch extent. ``row`` and ``col`` are the strides of the operand's two indices:
    A(m, k), B(k, n), C(m, n). For a windowed B, ``row`` and ``col`` are unused and 0.
    """

    batch: tuple[int, ...] = ()
    row: int
    col: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAxis:
    """One spatial axis of a convolution: input position = ``out * step + tap * dilation - padding``.

    Positions outside ``0 <= position < extent`` read as zero. ``stride`` is the input's stride in elements.
    """

    extent: int
    stride: int
    out: int
    taps: int
    step: int = 1
    dilation: int = 1
    padding: int = 0

    @property
    def padded(self) -> int:
        """Length of the axis that the windows touch, counted from position ``-padding``."""
        return (self.out - 1) * self.step + (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """B read through sliding windows: k = (channel, tap of each axis), n = (output position of each axis), row-major.

    1 to 3 ``axes``. A is then the weight ``(m, channel, taps...)``, which must be affine in the flattened k. Groups
    of a grouped convolution are a batch dimension.
    """

    channels: int
    channel_stride: int
    axes: tuple[WindowAxis, ...]

    @property
    def k(self) -> int:
        return self.channels * prod(axis.taps for axis in self.axes)

    @property
    def n(self) -> int:
        return prod(axis.out for axis in self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractionSpec:
    """One contraction ``C[b, m, n] = sum_k A[b, m, k] * B[b, k, n]`` with known extents (each at least 1).

    ``batch`` are the batch extents, outermost first; every ``Access.batch`` has as many strides. ``c`` is where the
    plain store goes when there is no epilogue, and is otherwise unused. ``window`` makes B a convolution's input, and
    then ``k == window.k`` and ``n == window.n``. ``dtype`` is F32, or F64 without a window.

    Raises:
        ValueError: the numbers contradict each other.
    """

    batch: tuple[int, ...] = ()
    m: int
    n: int
    k: int
    a: Access
    b: Access
    c: Access
    window: Window | None = None
    dtype: DType = DType.F32

    def __post_init__(self) -> None:
        if min((*self.batch, self.m, self.n, self.k)) < 1:
            raise ValueError("a contraction has extents of at least 1")
        if any(len(access.batch) != len(self.batch) for access in (self.a, self.b, self.c)):
            raise ValueError("every operand has one batch stride per batch extent")
        if self.dtype not in (DType.F32, DType.F64):
            raise ValueError(f"contractions are of float32 or float64, not {self.dtype}")
        if self.window and (self.window.k, self.window.n) != (self.k, self.n):
            raise ValueError("k and n must be those of the window")

    @property
    def flops(self) -> int:
        """Floating-point operations, a multiply-add being two."""
        return 2 * prod(self.batch) * self.m * self.n * self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Where a callback's text is placed: one vector of values and the indices of its lane 0.

    ``value`` is a C++ expression of type ``vf`` (``vd`` for float64), free of side effects but not free of cost: use
    it once. ``batch`` are names of ``int64_t`` variables, one per batch extent. ``row`` and ``col`` are ``int64_t``
    expressions in the operand's indices: A (m, k), B (k, n), C (m, n); for a windowed B, ``row`` is the channel and
    ``col`` the flattened (row-major) unpadded input position. Consecutive lanes step along ``axis``. ``count`` is
    None when all lanes are valid, else a C++ ``int`` expression of 1 to the vector's lanes: the leading lanes that
    are. Memory of invalid lanes must be neither read nor written.
    """

    value: str
    batch: tuple[str, ...]
    row: str
    col: str
    axis: Literal["row", "col"]
    count: str | None


Prologue = Callable[[Lanes], str]
"""Returns a C++ *expression* of the vector's type: the transformed operand. Applied once per packed element; each
element's value must depend on its own index only."""

Epilogue = Callable[[Lanes], str]
"""Returns C++ *statements* that store the finished sum wherever it belongs (``axis`` is always ``"col"``). Runs exactly
once for each element of C, in a block of its own."""
