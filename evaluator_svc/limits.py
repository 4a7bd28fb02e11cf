"""How far from the truth an output may be (pure): limits measured on trusted implementations, never guessed.

The rule is the fp64-anchored one of ``torch._dynamo.utils.same`` and of FlashAttention's tests: an error is a small
multiple of what a trusted implementation of the same precision makes, plus a floor in units in the last place (ulp) of
the output's scale. Where both of those sources have 2 or 3 for the multiple, float32 has 10 here, and its floor 32 ulp
instead of 2: the trusted implementation sums pairwise, and an honest serial sum of 1,024 terms is off by up to 10 ulp
where that is off by one (measured on the example operators). What this gives away is taken back by the sets of the
catalogue on which a sum has few terms, by integers that any order must sum exactly, and by the elementwise bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator_svc.cases import UNIT_ROUNDOFF, Reference
from shared.dtypes import DType

FLUSHED = {DType.F32: 2.0**-126, DType.BF16: 2.0**-126, DType.F64: 2.0**-1022, DType.F16: 0.0}
"""Below its smallest normal number a result may be flushed to zero, as ``-ftz`` and ``-ffast-math`` do. No device
flushes float16."""
HALF = 0.5
"""An output that must be an integer is off by less than this: any summation order gives the integer itself, and a fast
Fourier or Winograd transform rounds to it."""
TERMS_FACTOR = 8.0
"""``c`` of the bound ``c sqrt(K) u |A||B|``. The worst case of any summation order is ``K u |A||B|`` (Higham, Accuracy
and Stability of Numerical Algorithms, 3.5), so the sum of both refuses no order at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Multiples of the reference's error and floors in ulp, for root mean square and maximum; ``held_out_…``: how many
    times the floors hold on held-out values.
    """

    rmse_multiple: float
    rmse_floor_ulps: float
    max_multiple: float
    max_floor_ulps: float
    held_out_rmse: int
    held_out_max: int


WIDE = Tolerance(
    rmse_multiple=10.0,
    rmse_floor_ulps=32.0,
    max_multiple=10.0,
    max_floor_ulps=64.0,
    held_out_rmse=12,
    held_out_max=16,
)
"""float32, float64. A serial fp32 sum of 1,024 terms is off by up to ~10 ulp; 32 is a hundredth of what fp16 makes. It
loses each term under half an ulp of what it holds, and rounds equal terms all to one side: a thousand exponentials
below their row's maximum are up to 670 ulp, 280 in root mean square over such rows (heavy tails and single spikes in a
softmax, which are held-out values); summed by sixteen lanes of AVX-512, as the trusted implementation does, 30."""
NARROW = Tolerance(
    rmse_multiple=3.0, rmse_floor_ulps=2.0, max_multiple=4.0, max_floor_ulps=8.0, held_out_rmse=4, held_out_max=8
)
"""16-bit types, whose kernels accumulate wider and round once (``torch._dynamo.utils.same`` has 3 for them, too)."""


def tolerance(dtype: DType) -> Tolerance:
    """The limits of a floating ``dtype``."""
    return WIDE if dtype in (DType.F32, DType.F64) else NARROW


def rmse_limit(reference: Reference) -> float:
    """Largest acceptable root-mean-square error (absolute)."""
    allowed = tolerance(reference.spec.dtype)
    floors = allowed.rmse_floor_ulps * (allowed.held_out_rmse if reference.held_out else 1)
    floor = floors * UNIT_ROUNDOFF[reference.spec.dtype] * reference.scale_rms
    return allowed.rmse_multiple * reference.rmse + floor + FLUSHED[reference.spec.dtype]


def max_limit(reference: Reference) -> float:
    """Largest acceptable error of one element (absolute)."""
    allowed = tolerance(reference.spec.dtype)
    floors = allowed.max_floor_ulps * (allowed.held_out_max if reference.held_out else 1)
    floor = floors * UNIT_ROUNDOFF[reference.spec.dtype] * reference.scale_max
    return allowed.max_multiple * reference.max_error + floor + FLUSHED[reference.spec.dtype]


def terms_share(reference: Reference) -> float:
    """What an element's error may be of its ``|A||B|``, for sums of ``reference.terms`` products."""
    terms = max(reference.terms, 1.0)
    return float(TERMS_FACTOR * terms**0.5 + terms) * UNIT_ROUNDOFF[reference.spec.dtype]
