"""When to stop measuring (pure).

Every look may decide, because the intervals are confidence sequences (``statistics``): stopping at the first look that
says "faster" is as safe as stopping at a number of rounds fixed before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from numpy.typing import ArrayLike

from evaluator_svc.statistics import Interval, sequence

TARGET = 0.005
"""Half the width of an interval's logarithm at which more rounds are of no use (evaluation.md §3.2, 8)."""
CLEAR_SHARE = 0.25
"""A gain is known well enough once its interval's half width is this share of it: rankings need no more."""
HOPELESS = 3.0
"""A candidate this many times slower than every baseline cannot win, however noisy the moment."""


class Decision(StrEnum):
    """Why measuring stopped."""

    FASTER = "faster"
    """Than the baseline by more than the noise floor, and by how much is known well enough."""
    SLOWER = "slower"
    PRECISE = "precise"
    """The half width reached its target."""
    HOPELESS = "hopeless"
    EXHAUSTED = "exhausted"
    """The last round allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The rule. ``fewest`` and ``most`` count mirrored rounds, of all processes so far; ``delta`` is the noise floor.

    Raises:
        ValueError: not 1 <= fewest <= most, or a negative delta.
    """

    fewest: int
    most: int
    delta: float
    hopeless_rounds: int = 3
    target: float = TARGET

    def __post_init__(self) -> None:
        if not 1 <= self.fewest <= self.most or self.delta < 0:
            raise ValueError("expected 1 <= fewest <= most and a delta that is not negative")

    def look(self, logs: Mapping[str, ArrayLike]) -> Decision | None:
        """What the rounds so far decide; None: measure another. ``logs`` has, per baseline, ``log(baseline /
        candidate)`` of each round.

        The decision is that against the fastest baseline, once the candidate stands clear against every one.
        """
        found = {name: sequence(values) for name, values in logs.items()}
        rounds = min(one.rounds for one in found.values())
        if rounds >= self.hopeless_rounds and all(one.high < 1.0 / HOPELESS for one in found.values()):
            return Decision.HOPELESS
        if rounds >= self.fewest:
            settled = [self._settled(one) for one in sorted(found.values(), key=lambda one: one.ratio)]
            if all(settled):
                return settled[0]
        return Decision.EXHAUSTED if rounds >= self.most else None

    def _settled(self, found: Interval) -> Decision | None:
        if found.high < 1.0:
            return Decision.SLOWER
        gain = math.log(found.ratio)
        if found.low > 1.0 + self.delta and found.half_width <= CLEAR_SHARE * gain:
            return Decision.FASTER
        return Decision.PRECISE if found.half_width <= self.target else None
