"""Watching what a process cannot work without: bus, store and cache are pinged, and readiness follows.

Work in progress needs no telling: every call waits by itself for a dependency that is gone (``shared.patience``).
Readiness is for those outside: a load balancer sends new calls elsewhere, and people see which one is missing and since
when. The process is not restarted for it (``Health.live``), because a restart brings no broker back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from shared import metrics
from shared.errors import Unavailable
from shared.health import Gone
from shared.periodic import every
from shared.ports import Ports

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """Read from ``DEPENDENCY_*``."""

    ping_every_s: float = 2.0
    """Pause between rounds; all are pinged at once."""
    ping_timeout_s: float = 3.0
    """A ping without an answer for this long has failed."""
    failures_max: int = 2
    """Failed pings in a row after which a dependency counts as gone: one lost packet is none. An answer ends it."""

    def __post_init__(self) -> None:
        if min(self.ping_every_s, self.ping_timeout_s) <= 0 or self.failures_max < 1:
            raise ValueError("intervals and counts must be positive")


class Dependencies:
    """``gone`` is what does not answer now; read it whenever, it is never replaced."""

    def __init__(self, ports: Ports, settings: WatchSettings | None = None) -> None:
        self._pings: Mapping[str, Callable[[], Awaitable[None]]] = {
            "bus": ports.bus.ping,
            "store": ports.store.ping,
            "cache": ports.cache.ping,
        }
        self._clock, self._settings = ports.clock, settings or WatchSettings()
        self._failing: dict[str, tuple[int, Gone]] = {}
        self.gone: dict[str, Gone] = {}

    async def watch(self, stop: asyncio.Event) -> None:
        """Ping until ``stop``. Raises what a ping raises besides ``Unavailable``."""
        await every(self._settings.ping_every_s, self.look, stop)

    async def look(self) -> None:
        """One round."""
        async with asyncio.TaskGroup() as group:
            for name in self._pings:
                group.create_task(self._ping(name))

    async def _ping(self, name: str) -> None:
        try:
            async with asyncio.timeout(self._settings.ping_timeout_s):
                await self._pings[name]()
        except Unavailable as error:
            self._failed(name, str(error))
        except TimeoutError:
            self._failed(name, f"no answer within {self._settings.ping_timeout_s:g} s")
        else:
            self._answered(name)

    def _failed(self, name: str, reason: str) -> None:
        times, first = self._failing.get(name, (0, Gone(since_ns=self._clock.now_ns(), reason=reason)))
        self._failing[name] = (times + 1, first)
        if times + 1 >= self._settings.failures_max and name not in self.gone:
            self.gone[name] = first
            metrics.DEPENDENCY_UP.set(0, name)
            log.error("%s is gone: %s", name, reason)

    def _answered(self, name: str) -> None:
        self._failing.pop(name, None)
        metrics.DEPENDENCY_UP.set(1, name)
        if lost := self.gone.pop(name, None):
            away_s = (self._clock.now_ns() - lost.since_ns) / 1e9
            log.warning("%s is back after %.1f s", name, away_s)
