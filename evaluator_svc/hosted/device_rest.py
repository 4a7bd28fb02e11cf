"""Whether a device is at rest, by what a tiny operation of our own takes.

Contexts share a device by turns: beside another one's kernel an operation of a few microseconds waits for as long as
the kernel runs, or for a turn, also while the kernel's process is stopped. On an H200 it takes 7 to 9 µs at rest and
200 to 2400 µs beside a kernel.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

TIMES, SLACK_NS = 8.0, 60_000
"""A device at rest answers within so many times the median and so much more, for the processor's noise."""
PROBES = 20
"""To learn what rest is."""
TRIES, PAUSE_S = 3, 0.004
"""A device is at work when so many probes wait, so far apart: longer than a turn, because the next operation in our own
turn is quick beside whatever load. One alone may be the processor's noise."""
REST_MOST_NS = 150_000
"""Where even the median probe takes longer, others have the device."""
TURN_NS = 1_000_000
"""Who waits for so long may have waited for a turn's end only: the other's work may go on after it. On an H200 that was
up to 2.4 ms; a context that was done, but had the device last, is waited for a fraction of a millisecond."""
SEEN_TIMES = 3.0
"""What a probe takes beyond so many times the median is time in which the device worked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """What a device had still to do, ns. ``seen``: for how long our operation had to wait; a long kernel shows only a
    turn of it. ``charged``: no less than what it had to do: that, or the time until the device was found at rest.
    """

    seen: int
    charged: int


class Rest:
    """``probe`` does a tiny operation and tells what it took, ns. ``learn`` comes first."""

    def __init__(
        self,
        probe: Callable[[], int],
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._probe, self._pause, self._clock = probe, pause, clock
        self.rest_ns = 0.0

    def learn(self) -> int | None:
        """What rest is, from a device that is at rest; once. What a probe takes where it is not, ns."""
        if self.rest_ns:
            return None
        self._probe()  # the first one warms up
        rest_ns = statistics.median(self._probe() for _ in range(PROBES))
        if rest_ns > REST_MOST_NS:
            return round(rest_ns)
        self.rest_ns = rest_ns
        return None

    def waited(self) -> Waited:
        """Wait for the device to come to rest, as far as it does so soon."""
        begin, took = self._clock(), self._probe()
        seen = max(0, round(took - SEEN_TIMES * self.rest_ns))
        if seen < TURN_NS:
            return Waited(seen=seen, charged=seen)
        for _ in range(TRIES - 1):
            self._pause(PAUSE_S)
            at = self._clock()
            if self._probe() <= self._allowed:
                return Waited(seen=seen, charged=at - begin)
        return Waited(seen=seen, charged=self._clock() - begin)

    def busy_ns(self) -> int | None:
        """What a probe takes on a device that does not come to rest; None on one at rest."""
        took = self._probe()
        for _ in range(TRIES - 1):
            if took <= self._allowed:
                return None
            self._pause(PAUSE_S)
            took = self._probe()
        return took if took > self._allowed else None

    @property
    def _allowed(self) -> float:
        return TIMES * self.rest_ns + SLACK_NS
