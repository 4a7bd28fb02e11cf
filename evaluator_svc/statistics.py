"""Statistics of block times measured in mirrored rounds (pure).

A mirrored round has two blocks of every contestant, in an order drawn for the round and then in its reverse (A B B A,
A B C C B A): drift that is linear over a round adds the same to every contestant and divides out. One round gives one
``log(baseline / candidate)``; a speedup is the median over rounds.

Its interval is a confidence sequence, which holds at every number of rounds at once, so that measuring may stop when
the numbers say so. The order being drawn afresh for every round, the sign of a round's log-ratio minus the true one is
a fair coin whatever the machine does meanwhile: drift, bursts, heavy tails (R. A. Fisher, *The Design of Experiments*,
1935, ch. II-III). Betting against that coin, with a uniform prior over its bias, gives a martingale, which exceeds
``1 / a`` ever with probability ``a`` at most (J. Ville, 1939; H. Robbins, *Statistical methods related to the law of
the iterated logarithm*, 1970; for quantiles S. Howard, A. Ramdas, *Sequential estimation of quantiles*, 2022). The
interval is the set of medians that the bets do not refute: two order statistics.

The percentile bootstrap of a median covers less than it states at these numbers of rounds (``test_statistics.py`` has
the simulation). It serves where its level is no promise, and, over processes and rounds, to widen an interval by what
processes differ (A. Davison, D. Hinkley, *Bootstrap Methods and their Application*, 1997, §3.8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 4000
CONTROL_CONFIDENCE = 0.95
"""Of the bootstrap of a control, on which no claim rests."""
ERROR_PER_SIDE = 0.003
"""Of an interval, over all its looks. A search announces after at most three final measurements, each against one
baseline: a kernel no faster than it is announced in less than 1 % of searches."""
DELTA_MIN = 0.005
"""No gain below this is called one (evaluation.md §3.2)."""
DELTA_UNKNOWN = 0.02
"""The same where the worker has not measured enough equal pairs to know better."""
A_A_FEWEST = 20
"""Measurements of equal pairs before their 99th percentile is taken for the worker's own."""
A_A_QUANTILE = 0.99
MAD_TO_SIGMA = 1.4826
"""Of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A ratio with its interval, from ``rounds`` rounds."""

    ratio: float
    low: float
    high: float
    rounds: int = 0

    def beyond(self, tolerance: float) -> bool:
        """Whether the whole interval lies outside 1 +- ``tolerance``."""
        return self.low > 1.0 + tolerance or self.high < 1.0 - tolerance

    @property
    def half_width(self) -> float:
        """Of its logarithm: 0.005 is half a per cent to either side."""
        return math.log(self.high / self.low) / 2


def log_ratios(numerator: Sequence[float], denominator: Sequence[float]) -> NDArray[np.float64]:
    """Per mirrored round the mean of ``log(numerator / denominator)`` over its two blocks.

    Takes block times in the order measured, two per round; shape (blocks,) gives shape (blocks // 2,). A round that
    was not finished is left out.

    Raises:
        ValueError: no whole round, unequal lengths, or times that are not positive.
    """
    if len(numerator) != len(denominator) or len(numerator) < 2:
        raise ValueError("needs one or more whole rounds of both contestants")
    top, bottom = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    if top.min() <= 0 or bottom.min() <= 0:
        raise ValueError("times must be positive")
    logs = np.log(top / bottom)
    whole = logs.size // 2 * 2
    means: NDArray[np.float64] = logs[:whole].reshape(-1, 2).mean(axis=1)
    return means


def sequence(logs: ArrayLike) -> Interval:
    """The median of ``logs`` with its confidence sequence: may be looked at after every round.

    With fewer rounds than the error rate allows (``FEWEST_ROUNDS``) the interval is the range of what was seen, and no
    gain is proved: ``low`` is 1 at most.

    Raises:
        ValueError: no round.
    """
    ordered = np.sort(np.asarray(logs, dtype=np.float64))
    if ordered.size < 1:
        raise ValueError("needs one or more rounds")
    agreeing = agreeing_needed(ordered.size)
    if agreeing is None:
        low, high = min(1.0, math.exp(ordered[0])), math.exp(ordered[-1])
    else:
        low, high = math.exp(ordered[ordered.size - agreeing]), math.exp(ordered[agreeing - 1])
    return Interval(ratio=float(np.exp(np.median(ordered))), low=low, high=high, rounds=ordered.size)


@cache
def agreeing_needed(rounds: int, error: float = ERROR_PER_SIDE) -> int | None:
    """How many of ``rounds`` rounds must lie on one side of a value to refute that it is the median; None: no number.

    The wealth of a gambler who bet on ``k`` of ``n`` fair coins with a uniform prior over biases from 1/2 to 1 is
    ``sum(C(n + 1, i), i <= k) / ((n + 1) C(n, k))``; the value is refuted once that reaches ``1 / error``.
    """
    for agreeing in range(rounds + 1):
        wealth = sum(math.comb(rounds + 1, i) for i in range(agreeing + 1))
        if 2 * agreeing > rounds and wealth * error >= (rounds + 1) * math.comb(rounds, agreeing):
            return agreeing
    return None


FEWEST_ROUNDS = next(rounds for rounds in range(1, 100) if agreeing_needed(rounds) is not None)
"""Below this many even unanimous rounds prove nothing."""


def pooled(processes: Sequence[ArrayLike], seed: int) -> Interval:
    """The median over the rounds of several fresh processes (one array of log-ratios each).

    The confidence sequence of all rounds together, widened to the two-level bootstrap: processes are drawn, then their
    rounds. With one process it is the confidence sequence alone. So a process that was faster by luck (the placement
    of its pages) cannot carry a claim that the others do not.
    """
    logs = [np.asarray(one, dtype=np.float64) for one in processes]
    found = sequence(np.concatenate(logs))
    if len(logs) < 2 or found.rounds < FEWEST_ROUNDS:
        return found
    generator = np.random.default_rng(seed)
    picks = generator.integers(0, len(logs), size=(RESAMPLES, len(logs)))
    counted = max(one.size for one in logs)
    drawn = np.stack([one[generator.integers(0, one.size, size=(RESAMPLES, len(logs), counted))] for one in logs])
    chosen = drawn[picks, np.arange(RESAMPLES)[:, None], np.arange(len(logs))[None, :]]
    medians = np.median(chosen.reshape(RESAMPLES, -1), axis=1)
    low, high = np.exp(np.quantile(medians, [ERROR_PER_SIDE, 1.0 - ERROR_PER_SIDE]))
    return Interval(
        ratio=found.ratio, low=min(found.low, float(low)), high=max(found.high, float(high)), rounds=found.rounds
    )


def bootstrap(logs: ArrayLike, seed: int, *, confidence: float = CONTROL_CONFIDENCE) -> Interval:
    """The median of ``logs`` with its percentile bootstrap over rounds, which covers less than ``confidence``.

    B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 13.
    """
    values = np.asarray(logs, dtype=np.float64)
    generator = np.random.default_rng(seed)
    medians = np.median(values[generator.integers(0, values.size, size=(RESAMPLES, values.size))], axis=1)
    tail = (1.0 - confidence) / 2
    low, high = np.exp(np.quantile(medians, [tail, 1.0 - tail]))
    return Interval(ratio=float(np.exp(np.median(values))), low=float(low), high=float(high), rounds=values.size)


def self_ratio(times: Sequence[float], seed: int) -> Interval:
    """A/A within one process: the two blocks of each round of one contestant. Its interval should hold 1.

    Raises:
        ValueError: fewer than two rounds, or times that are not positive.
    """
    whole = len(times) // 2 * 2
    if whole < 4 or min(times) <= 0:
        raise ValueError("needs two or more rounds, and positive times")
    values = np.log(np.asarray(times[:whole], dtype=np.float64).reshape(-1, 2))
    return bootstrap(values[:, 0] - values[:, 1], seed)


def spread(times: Sequence[float]) -> float:
    """Scatter of block times relative to their median: normal-consistent median absolute deviation."""
    values = np.asarray(times, dtype=np.float64)
    middle = float(np.median(values))
    return float(MAD_TO_SIGMA * np.median(np.abs(values - middle)) / middle)


def noise_floor(equal_pairs: ArrayLike) -> float:
    """The gain that a worker must see before it calls one: the delta of ``low > 1 + delta``.

    ``equal_pairs``: log-ratios that this worker measured between equal kernels in different processes. Its 99th
    percentile holds what rounds cannot average out, that one process is placed better in memory than another
    (evaluation.md §3.2, 8).
    """
    sizes = np.abs(np.asarray(equal_pairs, dtype=np.float64))
    if sizes.size < A_A_FEWEST:
        return max(DELTA_UNKNOWN, float(np.expm1(sizes.max(initial=0.0))))
    return max(DELTA_MIN, float(np.expm1(np.quantile(sizes, A_A_QUANTILE, method="higher"))))
