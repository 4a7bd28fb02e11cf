"""How many questions an endpoint is asked at once, by all replicas together.

A slot is a named lease; a process that dies frees its slots when they expire. Inside a process slots are handed out in
turn; between processes whoever looks first when one is free.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.cache import Leases
from shared.errors import Unavailable
from shared.events import Usage
from synthesizer_svc.model import ModelErrorCode
from synthesizer_svc.model.faults import Fault

LOOK_AGAIN_S = 0.05
LOOK_AGAIN_MAX_S = 1.0
GRACE_S = 5.0
"""How long a lease outlives the call that it was taken for."""


class Slots:
    """At most ``count`` at a time under ``name``. Without the cache's server the limit holds for each process alone."""

    def __init__(self, name: str, count: int, leases: Leases) -> None:
        self._name, self._count, self._leases = name, count, leases
        self._here = asyncio.Semaphore(count)

    @asynccontextmanager
    async def held(self, deadline_s: float) -> AsyncIterator[None]:
        """A slot for the block, which may take ``deadline_s``, waiting included.

        Raises:
            Fault: none became free in that time.
        """
        try:
            async with asyncio.timeout(max(0.0, deadline_s)):
                await self._here.acquire()
                try:
                    taken = await self._take(deadline_s + GRACE_S)
                except BaseException:
                    self._here.release()
                    raise
        except TimeoutError:
            detail = f"none of its {self._count} slots became free in time"
            raise Fault(ModelErrorCode.DEADLINE, detail, usage=Usage()) from None
        try:
            yield
        finally:
            self._here.release()
            if taken is not None:
                await self._give_back(*taken)

    async def _take(self, ttl_s: float) -> tuple[str, int] | None:
        owner, pause_s = secrets.token_hex(8), LOOK_AGAIN_S
        while True:
            try:
                for number in range(self._count):
                    slot = f"{self._name}.{number}"
                    token = await self._leases.acquire(slot, owner, ttl_s)
                    if token is not None:
                        return slot, token
            except Unavailable:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(LOOK_AGAIN_MAX_S, pause_s * 2)

    async def _give_back(self, slot: str, token: int) -> None:
        try:
            await self._leases.release(slot, token)
        except Unavailable:
            return  # it expires
