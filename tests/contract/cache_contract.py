"""What every cache promises. An adapter's test class inherits this and says how to make one and how to pass time."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pytest

from shared.cache import CacheBackend
from tests.aio import on_loop


class CacheContract(ABC):
    @abstractmethod
    def make(self) -> CacheBackend:
        """An empty cache, not open yet."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass for the cache."""

    @on_loop
    async def test_a_value_is_kept_and_replaced(self) -> None:
        async with self.make() as backend:
            assert await backend.cache.get("k") is None
            await backend.cache.put("k", b"\x001")
            assert await backend.cache.get("k") == b"\x001"
            await backend.cache.put("k", b"")
            assert await backend.cache.get("k") == b""

    @on_loop
    async def test_a_value_expires_after_its_time_to_live(self) -> None:
        async with self.make() as backend:
            await backend.cache.put("k", b"v", ttl_s=10)
            self.advance(9)
            assert await backend.cache.get("k") == b"v"
            self.advance(2)
            assert await backend.cache.get("k") is None

    @on_loop
    async def test_putting_again_sets_the_time_to_live_again(self) -> None:
        async with self.make() as backend:
            await backend.cache.put("k", b"v", ttl_s=10)
            await backend.cache.put("k", b"v")
            self.advance(100)
            assert await backend.cache.get("k") == b"v"

    @pytest.mark.parametrize("ttl_s", [0, -1])
    @on_loop
    async def test_a_time_to_live_is_positive(self, ttl_s: float) -> None:
        async with self.make() as backend:
            with pytest.raises(ValueError, match="time to live"):
                await backend.cache.put("k", b"v", ttl_s=ttl_s)
            with pytest.raises(ValueError, match="time to live"):
                await backend.leases.acquire("d", "a", ttl_s)

    @on_loop
    async def test_a_lease_has_one_owner(self) -> None:
        async with self.make() as backend:
            assert await backend.leases.acquire("device", "a", 10) is not None
            assert await backend.leases.acquire("device", "b", 10) is None
            assert await backend.leases.acquire("other", "b", 10) is not None

    @on_loop
    async def test_tokens_only_grow_whatever_ended_the_lease(self) -> None:
        async with self.make() as backend:
            first = await backend.leases.acquire("d", "a", 10)
            again = await backend.leases.acquire("d", "a", 10)
            self.advance(11)
            expired = await backend.leases.acquire("d", "b", 10)
            assert expired is not None
            await backend.leases.release("d", expired)
            released = await backend.leases.acquire("d", "a", 10)
            tokens = [first, again, expired, released]
            assert tokens == sorted(set(tokens))

    @on_loop
    async def test_the_old_token_of_an_owner_that_acquired_again_is_void(self) -> None:
        async with self.make() as backend:
            old = await backend.leases.acquire("d", "a", 10)
            await backend.leases.acquire("d", "a", 10)
            assert old is not None
            assert not await backend.leases.renew("d", old, 10)

    @on_loop
    async def test_renewing_extends_a_lease_and_only_a_held_one(self) -> None:
        async with self.make() as backend:
            token = await backend.leases.acquire("d", "a", 10)
            assert token is not None
            self.advance(8)
            assert await backend.leases.renew("d", token, 10)
            self.advance(8)
            assert await backend.leases.acquire("d", "b", 10) is None
            self.advance(3)
            assert not await backend.leases.renew("d", token, 10)

    @on_loop
    async def test_releasing_a_lease_one_lost_changes_nothing(self) -> None:
        async with self.make() as backend:
            lost = await backend.leases.acquire("d", "a", 10)
            assert lost is not None
            self.advance(11)
            assert await backend.leases.acquire("d", "b", 10) is not None
            await backend.leases.release("d", lost)
            assert await backend.leases.acquire("d", "c", 10) is None
