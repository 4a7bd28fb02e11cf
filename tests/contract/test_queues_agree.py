"""The queues in memory and in Redis keep the same rules: whatever is done to both, both answer the same."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from shared.cache import Claim, Depth, Work, WorkQueues, WorkState
from shared.cache.memory import MemoryCacheBackend
from shared.cache.redis import RedisCacheBackend
from shared.clock import ManualClock
from tests import servers

PREFIX = f"ke-agree-{os.getpid()}-"
NAMES = tuple("abcdefghijklmnop")
numbers = itertools.count()

recent = st.sampled_from([0, 0, 0, 1, 1, 2, 5])
"""Counts back from the newest claim."""
seconds = st.sampled_from([0.000_001, 0.5, 3, 10])
costs_ns = st.sampled_from([0, 0, 999, 10**8, 3 * 10**9, 10**10])
add = st.tuples(st.just("add"), st.sampled_from(NAMES), st.sampled_from(["", "x", "ü"]), st.sampled_from([0, 0, 0, 7]))
claim = st.tuples(st.just("claim"), st.sampled_from(["w", 'v \n"']), seconds)
renew = st.tuples(st.just("renew"), recent, seconds)
finish = st.tuples(st.just("finish"), recent, costs_ns)
give_back = st.tuples(st.just("give_back"), recent)
later = st.tuples(st.just("advance"), seconds)
steps = st.one_of(add, add, add, claim, claim, claim, finish, finish, finish, renew, give_back, later)
histories = st.lists(steps, min_size=20, max_size=80)


@pytest.fixture(autouse=True, scope="module")
def server() -> Iterator[None]:
    """Started before any event loop; the keys that were made here are removed."""
    with Redis.from_url(servers.redis_url()) as client:
        yield
        for key in client.scan_iter(f"{PREFIX}*"):
            client.delete(key)


@settings(max_examples=30)
@given(histories)
def test_memory_and_redis_answer_the_same_at_every_step(history: list[tuple]) -> None:
    asyncio.run(both(history))


async def both(history: list[tuple]) -> None:
    clock = ManualClock(10**18)
    url = servers.redis_url()
    url += f"{'&' if '?' in url else '?'}prefix={PREFIX}{next(numbers)}:"
    async with RedisCacheBackend(url, now_us=lambda: clock.now_ns() // 1000) as there:
        here = MemoryCacheBackend(clock)
        claims: list[Claim] = []
        for step in history:
            found = await done(here.queues, clock, claims, step)
            if step[0] != "advance":
                assert await done(there.queues, clock, claims, step) == found
            assert await seen(there.queues) == await seen(here.queues)
            if isinstance(found, Claim):
                claims.append(found)
        await drained(here.queues, there.queues)


async def done(queues: WorkQueues, clock: ManualClock, claims: list[Claim], step: tuple) -> object:
    match step:
        case ("advance", span_s):
            return clock.advance(round(span_s * 1e9))
        case ("add", name, flow, priority):
            return await queues.add("q", Work(id=name, flow=flow, body=name.encode(), priority=priority))
        case ("claim", worker, ttl_s):
            return await queues.claim("q", worker, ttl_s, 0)
    if not claims:
        return None
    held = claims[-1 - step[1] % len(claims)]
    match step:
        case ("renew", _, ttl_s):
            return await queues.renew("q", held, ttl_s)
        case ("finish", _, cost_ns):
            return await queues.finish("q", held, cost_ns)
        case _:
            return await queues.give_back("q", held)


async def seen(queues: WorkQueues) -> tuple[Depth, dict[str, WorkState]]:
    return await queues.depth("q"), dict(await queues.states("q", NAMES))


async def drained(here: WorkQueues, there: WorkQueues) -> None:
    """What is left comes in the same order from both."""
    while (found := await here.claim("q", "w", 60, 0)) is not None:
        assert await there.claim("q", "w", 60, 0) == found
        assert await here.finish("q", found, 10**9) is await there.finish("q", found, 10**9) is True
    assert await there.claim("q", "w", 60, 0) is None
