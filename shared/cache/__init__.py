"""The cache and lease ports. Losing what they hold loses time, never a fact.

``shared.adapters.open_cache(url, clock)`` chooses the adapter: ``memory:`` or ``redis://…``.
"""

from __future__ import annotations

from typing import Protocol, Self


class Cache(Protocol):
    """Bytes with an optional time to live."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, value: bytes, ttl_s: float | None = None) -> None: ...


class Leases(Protocol):
    """Exclusive, expiring ownership with a fencing token that only grows per name."""

    async def acquire(self, name: str, owner: str, ttl_s: float) -> int | None:
        """A token, or None while somebody else holds an unexpired lease. The same owner gets a new token."""
        ...

    async def renew(self, name: str, token: int, ttl_s: float) -> bool:
        """False when ``token`` no longer holds the lease."""
        ...

    async def release(self, name: str, token: int) -> None:
        """Does nothing when ``token`` no longer holds the lease."""
        ...


class CacheBackend(Protocol):
    """One back end, two ports; an async context manager."""

    @property
    def cache(self) -> Cache: ...
    @property
    def leases(self) -> Leases: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
