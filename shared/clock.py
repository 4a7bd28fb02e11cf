"""Time as a port, so that tests and simulations own it."""

from __future__ import annotations

import time
from typing import Protocol

SECOND_NS = 1_000_000_000


class Clock(Protocol):
    """``now_ns`` is wall time since the epoch; ``monotonic_ns`` only measures spans."""

    def now_ns(self) -> int: ...
    def monotonic_ns(self) -> int: ...


class SystemClock:
    """The machine's clocks."""

    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()


class ManualClock:
    """A clock that moves when told to."""

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_ns(self) -> int:
        return self._now_ns

    def advance(self, ns: int) -> None:
        self._now_ns += ns
