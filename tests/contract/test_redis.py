"""The Redis cache honours its ports, and what it does when its server crashes, forgets or refuses."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest
from redis import Redis

from shared.cache.redis import RedisCacheBackend
from shared.clock import SECOND_NS, ManualClock
from tests import servers
from tests.contract.cache_contract import CacheContract
from tests.contract.queue_contract import QueueContract

PREFIX = f"ke-test-{os.getpid()}-"
numbers = itertools.count()


@pytest.fixture(autouse=True, scope="module")
def server() -> Iterator[Redis]:
    """Started before any event loop; the keys that were made here are removed."""
    with Redis.from_url(servers.redis_url()) as client:
        yield client
        for key in client.scan_iter(f"{PREFIX}*"):
            client.delete(key)


def a_url() -> str:
    """Of an empty key space."""
    url = servers.redis_url()
    return f"{url}{'&' if '?' in url else '?'}prefix={PREFIX}{next(numbers)}:"


class TestRedisCache(CacheContract):
    def make(self) -> RedisCacheBackend:
        return RedisCacheBackend(a_url())

    def advance(self, seconds: float) -> None:
        """All times to live become shorter."""
        with Redis.from_url(servers.redis_url()) as client:
            for key in client.scan_iter(f"{PREFIX}*"):
                left_ms = client.pttl(key)
                if left_ms > 0:
                    client.pexpire(key, max(0, left_ms - round(seconds * 1000)))


class TestRedisQueues(QueueContract):
    def setup_method(self) -> None:
        self.clock = ManualClock()

    def make(self) -> RedisCacheBackend:
        return RedisCacheBackend(a_url(), now_us=lambda: self.clock.monotonic_ns() // 1000)

    def make_live(self) -> RedisCacheBackend:
        return RedisCacheBackend(a_url())

    def advance(self, seconds: float) -> None:
        self.clock.advance(round(seconds * SECOND_NS))
