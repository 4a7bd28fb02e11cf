"""Statistics of paired block times (pure).

A speedup is the median over rounds of ``log(baseline / candidate)``; its 95 % interval is a percentile bootstrap over
rounds (B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 13). Rounds are the unit because the
blocks of one round ran next to each other, so that slow drift of the machine divides out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 4000
CONFIDENCE = 0.95
MAD_TO_SIGMA = 1.4826
"""Of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A ratio with its interval."""

    ratio: float
    low: float
    high: float

    def beyond(self, tolerance: float) -> bool:
        """Whether the whole interval lies outside 1 +- ``tolerance``."""
        return self.low > 1.0 + tolerance or self.high < 1.0 - tolerance


def paired_ratio(numerator: Sequence[float], denominator: Sequence[float], seed: int) -> Interval:
    """Median of the per-round ratios ``numerator / denominator`` with its bootstrap interval.

    Raises:
        ValueError: fewer than two rounds, unequal lengths, or times that are not positive.
    """
    if len(numerator) != len(denominator) or len(numerator) < 2:
        raise ValueError("needs two or more rounds of both contestants")
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    if top.min() <= 0 or bottom.min() <= 0:
        raise ValueError("times must be positive")
    return _interval(np.log(top / bottom), seed)


def self_ratio(times: Sequence[float], seed: int) -> Interval:
    """A/A: the ratio of a contestant to itself in neighbouring rounds. Its interval should hold 1."""
    pairs = len(times) // 2
    return paired_ratio(times[: 2 * pairs : 2], times[1 : 2 * pairs : 2], seed)


def spread(times: Sequence[float]) -> float:
    """Scatter of block times relative to their median: normal-consistent median absolute deviation."""
    values = np.asarray(times, dtype=np.float64)
    middle = float(np.median(values))
    return float(MAD_TO_SIGMA * np.median(np.abs(values - middle)) / middle)


def _interval(logs: NDArray[np.float64], seed: int) -> Interval:
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, logs.size, size=(RESAMPLES, logs.size))
    medians = np.median(logs[picks], axis=1)
    tail = (1.0 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return Interval(ratio=float(np.exp(np.median(logs))), low=float(np.exp(low)), high=float(np.exp(high)))
