"""What a verdict is worth (pure)."""

from __future__ import annotations

import math

from shared.events import PPM, Evaluation, Status, Trust

TRUST_ORDER = tuple(Trust)
TRUST_TO_WIN = Trust.L3
"""Below this level no winner is announced."""


def score_ppm(evaluation: Evaluation, baseline: str) -> int:
    """Speedup over ``baseline`` in millionths; 0 for anything not PASSED or not timed against it."""
    speedup = evaluation.speedup(baseline) if evaluation.status is Status.PASSED else None
    return speedup.ratio_ppm if speedup else 0


def log_micro(ratio_ppm: int) -> int:
    """Natural logarithm of a speedup, in millionths: equal ratios are equal steps, whatever the kernel's time.

    A search that adds raw times instead explores more or less depending on the unit (milliseconds or microseconds).
    """
    return round(math.log(ratio_ppm / PPM) * PPM) if ratio_ppm > 0 else 0


def proves_gain(evaluation: Evaluation, baseline: str) -> bool:
    """Whether the interval against ``baseline`` lies wholly above 1, by more than the worker's noise."""
    speedup = evaluation.speedup(baseline) if evaluation.status is Status.PASSED else None
    return speedup is not None and speedup.proves_gain


def wins(evaluation: Evaluation, baseline: str) -> bool:
    """Whether a re-measurement supports announcing the candidate."""
    trusted = TRUST_ORDER.index(evaluation.trust) >= TRUST_ORDER.index(TRUST_TO_WIN)
    return trusted and proves_gain(evaluation, baseline)
