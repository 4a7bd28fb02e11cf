"""The cache and the leases in dictionaries, on a clock that is passed in. Bounded; oldest use leaves first."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Self

from shared.cache.memory_queues import MemoryWorkQueues
from shared.clock import SECOND_NS, Clock

ENTRIES_MAX = 10_000
"""Values kept; losing one costs time, never a fact."""


class MemoryCache:
    """See ``shared.cache.Cache``."""

    def __init__(self, clock: Clock, entries_max: int = ENTRIES_MAX) -> None:
        self._clock, self._entries_max = clock, entries_max
        self._entries: OrderedDict[str, tuple[bytes, int | None]] = OrderedDict()

    async def get(self, key: str) -> bytes | None:
        found = self._entries.get(key)
        if found is None:
            return None
        value, expires_ns = found
        if expires_ns is not None and self._clock.monotonic_ns() >= expires_ns:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    async def put(self, key: str, value: bytes, ttl_s: float | None = None) -> None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        expires_ns = None if ttl_s is None else _expiry(self._clock, ttl_s)
        self._entries[key] = (bytes(value), expires_ns)
        self._entries.move_to_end(key)
        if len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Lease:
    owner: str
    token: int
    expires_ns: int


class MemoryLeases:
    """See ``shared.cache.Leases``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leases: dict[str, _Lease] = {}
        self._tokens: dict[str, int] = {}

    async def acquire(self, name: str, owner: str, ttl_s: float) -> int | None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        expires_ns = _expiry(self._clock, ttl_s)
        held = self._current(name)
        if held is not None and held.owner != owner:
            return None
        token = self._tokens.get(name, 0) + 1
        self._tokens[name] = token
        self._leases[name] = _Lease(owner, token, expires_ns)
        return token

    async def renew(self, name: str, token: int, ttl_s: float) -> bool:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        expires_ns = _expiry(self._clock, ttl_s)
        held = self._current(name)
        if held is None or held.token != token:
            return False
        self._leases[name] = _Lease(held.owner, token, expires_ns)
        return True

    async def release(self, name: str, token: int) -> None:
        held = self._current(name)
        if held is not None and held.token == token:
            del self._leases[name]

    def _current(self, name: str) -> _Lease | None:
        held = self._leases.get(name)
        return held if held is not None and self._clock.monotonic_ns() < held.expires_ns else None


def _expiry(clock: Clock, ttl_s: float) -> int:
    if ttl_s <= 0:
        raise ValueError(f"a time to live of {ttl_s} s")
    return clock.monotonic_ns() + round(ttl_s * SECOND_NS)


class MemoryCacheBackend:
    """See ``shared.cache.CacheBackend``."""

    def __init__(self, clock: Clock) -> None:
        self.cache = MemoryCache(clock)
        self.leases = MemoryLeases(clock)
        self.queues = MemoryWorkQueues(clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing to close."""

    async def ping(self) -> None:
        """Always there."""
