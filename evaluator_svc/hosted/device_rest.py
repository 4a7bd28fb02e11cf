"""Whether a device is at rest, by what a tiny operation of our own takes.

Contexts share a device by turns: beside another one's kernel an operation of a few microseconds waits for as long as
the kernel runs, or for a turn, also while the kernel's process is stopped. On an H200 it takes 7 to 9 µs at rest and
200 to 2400 µs beside a kernel.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from shared.errors import Retryable

TIMES, SLACK_NS = 8.0, 60_000
"""A device at rest answers within so many times the median and so much more, for the processor's noise."""
PROBES = 20
"""To learn what rest is."""
PAUSE_S = 0.004
"""Before the probe that decides: longer than a turn."""
REST_MOST_NS = 150_000
"""Where even the median probe takes longer, others have the device."""
CHARGED_TIMES = 3.0
"""What a probe takes beyond so many times the median is time in which the device worked."""


class Rest:
    """``probe`` does a tiny operation and tells what it took, ns. Learns on construction: the device must be at rest.

    Raises:
        Retryable: it is not.
    """

    def __init__(self, probe: Callable[[], int], *, pause: Callable[[float], None] = time.sleep) -> None:
        self._probe, self._pause = probe, pause
        probe()  # the first one warms up
        self.rest_ns = statistics.median(probe() for _ in range(PROBES))
        if self.rest_ns > REST_MOST_NS:
            raise Retryable(f"the GPU is busy with others' work: an operation takes {self.rest_ns / 1e3:.0f} µs")

    def waited_ns(self) -> int:
        """What the device still had to do just now, as far as it can be told from rest; it is done on return."""
        return max(0, round(self._probe() - CHARGED_TIMES * self.rest_ns))

    def busy_ns(self) -> int | None:
        """What a probe takes on a device that is not at rest, now and again after a pause; None on one that is."""
        allowed = TIMES * self.rest_ns + SLACK_NS
        if self._probe() <= allowed:
            return None
        self._pause(PAUSE_S)
        took = self._probe()
        return took if took > allowed else None
