"""What the GPU did while something was timed on it: throttling, a falling clock.

The driver is asked before and after, from outside the candidate's process. A clock that is 3 % lower afterwards, or a
device that was slowed down for heat or power by hardware, makes a moment disturbed (evaluation.md §3.2: drift above 3 %
invalidates a block).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from evaluator_svc import nvidia
from evaluator_svc.nvidia import Gpu
from shared.events import Entry

DRIFT = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Evidence, and what of it disturbed."""

    seen: tuple[Entry, ...] = ()
    disturbed: tuple[Entry, ...] = ()


@dataclass(slots=True, kw_only=True)
class DeviceWatch:
    """``on``: whether there is a GPU to watch."""

    on: bool
    _before: Gpu | None = None

    async def begin(self) -> None:
        if self.on:
            self._before = await asyncio.to_thread(nvidia.ask)

    async def end(self) -> Seen:
        """What was seen since ``begin``; nothing without a GPU."""
        if not self.on:
            return Seen()
        return compared(self._before, await asyncio.to_thread(nvidia.ask))


def compared(before: Gpu | None, after: Gpu | None) -> Seen:
    """The driver's two words; None where it gave none."""
    if before is None or after is None:
        return Seen(seen=(Entry(name="gpu", value="unknown: the driver did not answer"),))
    told = f"{before.clock} to {after.clock} MHz, {after.temperature} °C, throttled {_known(after.throttled)}"
    seen = (Entry(name="gpu", value=told),)
    slower = before.clock is not None and after.clock is not None and after.clock < (1 - DRIFT) * before.clock
    return Seen(seen=seen, disturbed=seen if slower or after.throttled or before.throttled else ())


def _known(value: bool | None) -> str:
    return "unknown" if value is None else str(value).lower()
