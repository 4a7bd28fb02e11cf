"""A circuit breaker per endpoint: after failures in a row nobody asks for a while, then one question tries.

Its state is in the cache, so that all replicas see it: what they write at the same moment may lose a count, never more.
While the cache's server is away each process goes by what it has seen itself.

::

    closed ── failures_max in a row, or one that only a person can mend ──▶ open, for open_s
      ▲                                                                      │
      └────── the one question is answered ──── half-open ◀──────────────────┘
                                                    └── it fails: open again, for twice as long
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from shared.cache import Cache, Leases
from shared.cache.memory import MemoryCache, MemoryLeases
from shared.clock import Clock
from shared.errors import Unavailable
from shared.events import Usage
from synthesizer_svc.model import ModelErrorCode
from synthesizer_svc.model.faults import Fault

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """``MODEL_BREAKER_*``.

    Raises:
        ValueError: a limit below 1, or a time that is not positive.
    """

    failures_max: int = 6
    """Failed attempts in a row, of all questions together, after which the endpoint is left alone."""
    open_s: float = 30.0
    """For how long at first; doubles each time that it fails again."""
    open_max_s: float = 900.0
    """The longest of these times."""

    def __post_init__(self) -> None:
        if self.failures_max < 1 or min(self.open_s, self.open_max_s) <= 0:
            raise ValueError("limits must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is remembered. ``trips``: times that it opened since an answer."""

    failures: int = 0
    trips: int = 0
    code: str = ModelErrorCode.ENDPOINT
    detail: str = ""

    def after(self, fault: Fault, settings: BreakerSettings, *, probing: bool) -> Record:
        """After one more failure, which opens it when ``trips`` grows.

        While it is open, only the failure of the one question that tries counts: the others were asked before.
        """
        if self.trips and not probing:
            return self
        failures = self.failures + 1
        opens = fault.hopeless or probing or failures >= settings.failures_max
        return Record(failures=failures, trips=self.trips + opens, code=fault.code.value, detail=fault.told)

    def open_s(self, settings: BreakerSettings) -> float:
        """How long the latest opening lasts."""
        return min(settings.open_max_s, settings.open_s * 2.0 ** min(self.trips - 1, 30))


class Breaker:
    """``admitted`` around every attempt."""

    def __init__(self, name: str, *, cache: Cache, leases: Leases, clock: Clock, settings: BreakerSettings) -> None:
        self._name = name
        self._key, self._cache, self._leases, self._settings = f"model.breaker.{name}", cache, leases, settings
        self._own_cache, self._own_leases = MemoryCache(clock), MemoryLeases(clock)

    async def look(self) -> None:
        """Raises ``Fault``, as ``admitted``, while it is open: nothing need be prepared for an attempt then."""
        if await self._get(f"{self._key}.open") is not None:
            raise self._left_alone(await self._record())

    @asynccontextmanager
    async def admitted(self, deadline_s: float) -> AsyncIterator[None]:
        """An attempt, which may take ``deadline_s``, and its outcome.

        Raises:
            Fault: it is open; ``hopeless``, with the code and detail of the failure that opened it.
        """
        await self.look()
        record = await self._record()
        probe = await self._probe(record, deadline_s) if record.trips else None
        try:
            try:
                yield
            except Fault as fault:
                await self._failed(fault, probing=probe is not None)
                raise
            if record != Record():
                await self._put(self._key, _written(Record()))
        finally:
            if probe is not None:
                await self._release(probe)

    async def _failed(self, fault: Fault, *, probing: bool) -> None:
        if not (fault.ailing or fault.hopeless):
            await self._put(self._key, _written(Record()))  # it answered: it is well
            return
        record = await self._record()
        after = record.after(fault, self._settings, probing=probing)
        await self._put(self._key, _written(after))
        if after.trips > record.trips:
            seconds = after.open_s(self._settings)
            log.warning("model endpoint %s is left alone for %g s: %s", self._name, seconds, fault)
            await self._put(f"{self._key}.open", b"1", seconds)

    async def _probe(self, record: Record, deadline_s: float) -> int:
        name, owner, ttl_s = f"{self._key}.probe", secrets.token_hex(8), max(1.0, deadline_s)
        try:
            token = await self._leases.acquire(name, owner, ttl_s)
        except Unavailable:
            token = await self._own_leases.acquire(name, owner, ttl_s)
        if token is None:
            raise self._left_alone(record)
        return token

    async def _release(self, token: int) -> None:
        try:
            await self._leases.release(f"{self._key}.probe", token)
        except Unavailable:
            await self._own_leases.release(f"{self._key}.probe", token)

    def _left_alone(self, record: Record) -> Fault:
        return Fault(
            ModelErrorCode(record.code),
            f"left alone after failures: {record.detail}",
            retry_after_s=record.open_s(self._settings) if record.trips else self._settings.open_s,
            hopeless=True,
            usage=Usage(),
        )

    async def _record(self) -> Record:
        stored = await self._get(self._key)
        return Record(**json.loads(stored)) if stored else Record()

    async def _get(self, key: str) -> bytes | None:
        try:
            return await self._cache.get(key)
        except Unavailable:
            return await self._own_cache.get(key)

    async def _put(self, key: str, value: bytes, ttl_s: float | None = None) -> None:
        await self._own_cache.put(key, value, ttl_s)
        try:
            await self._cache.put(key, value, ttl_s)
        except Unavailable:
            return


def _written(record: Record) -> bytes:
    return json.dumps(asdict(record)).encode()
