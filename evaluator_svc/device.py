"""Exclusive use of the cores: nothing of this worker, of this pool or of this machine runs while something is timed.

Three layers: a gate inside the worker (builds and checks share it, timing has it alone), a file lock between programs
on this machine, and the lease of the cache port for machines that share no file system. The lease is renewed while it
is held; a measurement whose lease was lost meanwhile is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import AsyncFileLock, Timeout

from shared.cache import Leases
from shared.errors import Retryable, Unavailable
from shared.patience import patiently

LEASE_POLL_S = 0.05
"""The lease port has no wait; this is how often it is asked."""

log = logging.getLogger(__name__)


class Gate:
    """Many sharers or one owner; a waiting owner keeps new sharers out, so that timing is never starved."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()
        self._sharers, self._owners_waiting, self._owned = 0, 0, False

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        async with self._condition:
            await self._condition.wait_for(lambda: not self._owned and not self._owners_waiting)
            self._sharers += 1
        try:
            yield
        finally:
            async with self._condition:
                self._sharers -= 1
                self._condition.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with self._condition:
            self._owners_waiting += 1
            try:
                await self._condition.wait_for(lambda: not self._owned and not self._sharers)
            finally:
                self._owners_waiting -= 1
                self._condition.notify_all()
            self._owned = True
        try:
            yield
        finally:
            async with self._condition:
                self._owned = False
                self._condition.notify_all()


class Device:
    """One device: the cores of this machine (``cpu``), or a GPU by its identity."""

    def __init__(self, leases: Leases, lock: Path, *, name: str, owner: str, lease_s: float, wait_s: float) -> None:
        self.gate = Gate()
        self._leases, self._owner, self._lease_s, self._wait_s = leases, owner, lease_s, wait_s
        self._name = f"device/{socket.gethostname()}/{name}"
        lock.parent.mkdir(parents=True, exist_ok=True)
        self._lock = lock

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[int]:
        """The device alone; yields the lease's fencing token.

        Raises:
            Retryable: it was not free within the wait.
        """
        async with self.gate.alone():
            try:
                async with AsyncFileLock(self._lock, timeout=self._wait_s, thread_local=False):
                    token = await self._acquire()
                    keeper = asyncio.create_task(self._keep(token))
                    try:
                        yield token
                    finally:
                        keeper.cancel()
                        await self._release(token)
            except Timeout as error:
                raise Retryable(f"the cores were not free for {self._wait_s:g} s") from error

    async def held(self, token: int) -> bool:
        """Whether the lease is still ours; extends it. Waits for a cache that is gone."""
        return await patiently(lambda: self._leases.renew(self._name, token, self._lease_s), f"renew {self._name}")

    async def _keep(self, token: int) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            if not await self.held(token):
                log.warning("the lease %s was lost", self._name)
                return

    async def _release(self, token: int) -> None:
        try:
            await self._leases.release(self._name, token)
        except Unavailable as error:
            log.warning("the lease %s expires by itself: %s", self._name, error)

    async def _acquire(self) -> int:
        try:
            async with asyncio.timeout(self._wait_s):
                while True:
                    token = await patiently(self._ask, f"acquire {self._name}")
                    if token is not None:
                        return token
                    await asyncio.sleep(LEASE_POLL_S)
        except TimeoutError as error:
            raise Retryable(f"the lease {self._name} was not free for {self._wait_s:g} s") from error

    async def _ask(self) -> int | None:
        return await self._leases.acquire(self._name, self._owner, self._lease_s)
