"""The Redis cache honours its ports, and what it does when its server crashes, forgets or refuses."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from functools import partial

import pytest
from redis import Redis

from deploy.local.servers import cache_url
from shared.cache import Depth
from shared.cache.redis import RedisCacheBackend, _source
from shared.clock import SECOND_NS, ManualClock
from shared.errors import Fatal, Unavailable, UserError
from shared.patience import patiently
from tests import servers
from tests.aio import on_loop, until
from tests.contract.cache_contract import CacheContract
from tests.contract.queue_contract import QueueContract, a_work

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

    @on_loop
    async def test_claimers_of_many_processes_are_woken_by_each_others_work(self) -> None:
        url = a_url()
        async with AsyncExitStack() as stack:
            backends = [await stack.enter_async_context(RedisCacheBackend(url)) for _ in range(6)]
            waiting = [asyncio.create_task(each.queues.claim("q", "w", 60, 60)) for each in backends * 3]
            for number in range(len(waiting)):
                await backends[number % 6].queues.add("q", a_work(f"{number}"))
            claims = await asyncio.gather(*waiting)
        assert sorted(int(claim.work.id) for claim in claims if claim) == list(range(len(waiting)))

    @on_loop
    async def test_claimers_that_wait_cost_next_to_nothing(self) -> None:
        async with self.make_live() as backend:
            with Redis.from_url(servers.redis_url()) as client:

                def scripts() -> int:
                    return int(client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])

                asked = scripts()
                waiting = [asyncio.create_task(backend.queues.claim("q", f"w{n}", 60, 60)) for n in range(64)]
                # Each asks once; whose turn it is asks once more before it listens.
                await until(lambda: scripts() - asked > 64)
                before = scripts()
                await asyncio.sleep(0.2)
                assert scripts() - before <= 2
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    @on_loop
    async def test_claimers_that_find_nothing_in_time_go_away_without(self) -> None:
        async with self.make_live() as backend:
            claims = [backend.queues.claim("q", f"w{n}", 60, 0.2) for n in range(64)]
            assert await asyncio.gather(*claims) == [None] * 64

    @on_loop
    async def test_a_cancellation_that_the_client_took_for_its_own_is_no_less_one(self) -> None:
        async def swallows(_: object) -> int:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            return 1

        async with RedisCacheBackend(a_url()) as backend:
            asking = asyncio.create_task(backend.leases._server.call(swallows))
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    @on_loop
    async def test_a_lost_bell_delays_work_and_no_more(self) -> None:
        url = a_url()
        async with RedisCacheBackend(url) as backend:
            waiting = asyncio.create_task(backend.queues.claim("q", "w", 60, 60))
            await asyncio.sleep(0.05)
            with Redis.from_url(servers.redis_url()) as client:
                prefix = url.partition("prefix=")[2]
                with client.pipeline() as both:  # the bell is gone before the listener is served
                    script = client.register_script(_source("queue_add"))
                    script(keys=[f"{prefix}queue:{{q}}"], args=["", "a", "f", 0, b""], client=both)
                    both.delete(f"{prefix}queue:{{q}}:bells")
                    both.execute()
            assert await waiting is not None

    @on_loop
    async def test_emptying_the_server_at_any_moment_leaves_an_empty_queue(self) -> None:
        url, done, chance = a_url(), Counter[str](), random.Random(7)
        prefix = url.partition("prefix=")[2]
        async with RedisCacheBackend(url) as backend:
            with Redis.from_url(servers.redis_url()) as client:

                async def work(name: str) -> None:
                    while claim := await backend.queues.claim("q", name, 60, 0.2):
                        await backend.queues.renew("q", claim, 60)
                        await asyncio.sleep(chance.random() / 200)
                        kept = await backend.queues.finish("q", claim, 5000)
                        done["finished" if kept else "refused"] += 1

                async def add() -> None:
                    for number in range(300):
                        await backend.queues.add("q", a_work(f"{number}", f"f{number % 5}"))
                        if number % 40 == 17:
                            client.delete(*client.keys(f"{prefix}*"))

                await asyncio.gather(add(), *(work(f"w{n}") for n in range(8)))
                assert await backend.queues.depth("q") == Depth(waiting=0, claimed=0)
                assert done["finished"] > 0
                assert await backend.queues.add("q", a_work("0"))


class TestRedisIsAway:
    def test_it_works_again_when_its_server_was_killed_under_load(self) -> None:
        server = servers.fresh_redis()
        try:
            asyncio.run(work_while_killed(server))
        finally:
            server.close()

    def test_a_server_that_does_not_answer_is_unavailable(self) -> None:
        server = servers.fresh_redis()
        try:
            asyncio.run(call_while_frozen(server))
        finally:
            server.close()

    def test_a_server_that_cannot_write_now_is_unavailable(self) -> None:
        server = servers.fresh_redis()
        try:
            asyncio.run(call_a_replica(server))
        finally:
            server.close()

    @on_loop
    async def test_it_can_be_opened_later_when_it_was_not_there(self) -> None:
        backend = RedisCacheBackend(f"redis://127.0.0.1:{servers.free_port()}")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await backend.__aenter__()
        with pytest.raises(Fatal, match="is closed"):
            await backend.ping()


async def work_while_killed(server: servers.Server) -> None:
    finished: set[str] = set()
    async with RedisCacheBackend(cache_url(server.port)) as backend, asyncio.TaskGroup() as tasks:
        queues = backend.queues

        async def work(name: str) -> None:
            while len(finished) < 60:
                claim = await patiently(lambda: queues.claim("q", name, 1, 0.2), "claim")
                if claim and await patiently(partial(queues.finish, "q", claim, 1000), "finish"):
                    finished.add(claim.work.id)

        async def add() -> None:
            """Again and again what is not finished, as the intake does."""
            while missing := {f"{number}" for number in range(60)} - finished:
                for each in sorted(missing):
                    await patiently(partial(queues.add, "q", a_work(each)), "add")

        for number in range(6):
            tasks.create_task(work(f"w{number}"))
        tasks.create_task(add())
        await until(lambda: len(finished) >= 20)
        server.kill()
        with pytest.raises(Unavailable):
            await backend.ping()
        server.start()


async def call_while_frozen(server: servers.Server) -> None:
    async with RedisCacheBackend(f"{cache_url(server.port)}?socket_timeout=0.2") as backend:
        waiting = asyncio.create_task(backend.queues.claim("q", "w", 1, 60))
        server.freeze()
        try:
            for call in (backend.ping(), backend.cache.get("k"), backend.queues.add("q", a_work("a")), waiting):
                with pytest.raises(Unavailable):
                    await call
        finally:
            server.thaw()
        # Thawed, it carries out what it was sent: work may be there already, and a claim that nobody knows of expires.
        await patiently(lambda: backend.queues.add("q", a_work("a")), "add")
        assert await patiently(lambda: backend.queues.claim("q", "w", 10, 60), "claim") is not None


async def call_a_replica(server: servers.Server) -> None:
    async with RedisCacheBackend(cache_url(server.port)) as backend:
        with Redis(port=server.port) as client:
            client.replicaof("127.0.0.1", "1")
            for call in (backend.cache.put("k", b""), backend.queues.add("q", a_work("a"))):
                with pytest.raises(Unavailable):
                    await call
            client.replicaof("NO", "ONE")
            assert await backend.queues.add("q", a_work("a"))
            client.config_set("maxmemory", "1")
            with pytest.raises(Unavailable):
                await backend.cache.put("k", b"")


class TestRedisForgets:
    @on_loop
    async def test_scripts_are_sent_again(self) -> None:
        async with RedisCacheBackend(a_url()) as backend:
            await backend.queues.add("q", a_work("a"))
            with Redis.from_url(servers.redis_url()) as client:
                client.script_flush()
            assert not await backend.queues.add("q", a_work("a"))

    @on_loop
    async def test_tokens_grow_across_a_loss_of_all_keys(self) -> None:
        async with RedisCacheBackend(a_url()) as backend:
            tokens = []
            for _ in range(3):
                tokens.append(await backend.leases.acquire("device", "a", 10))
                await backend.queues.add("q", a_work("a"))
                claim = await backend.queues.claim("q", "w", 10, 0)
                assert claim is not None
                tokens.append(claim.token)
                with Redis.from_url(servers.redis_url()) as client:
                    client.delete(*client.keys(f"{PREFIX}*"))
                assert not await backend.queues.finish("q", claim, 1)
                assert not await backend.leases.renew("device", tokens[-2] or 0, 10)
        assert tokens == sorted(set(tokens))

    @on_loop
    async def test_nothing_is_left_of_a_queue_but_what_it_finished_and_its_numbers(self) -> None:
        url = a_url()
        prefix = url.partition("prefix=")[2]
        async with RedisCacheBackend(url) as backend:
            for number in range(20):
                await backend.queues.add("q", a_work(f"{number}", f"f{number % 3}", number % 2))
            while claim := await backend.queues.claim("q", "w", 10, 0):
                await backend.queues.finish("q", claim, 10**9)
        with Redis.from_url(servers.redis_url()) as client:
            left = {key.decode().rpartition(":")[2] for key in client.keys(f"{prefix}*")}
        assert left == {"finished", "numbers"}


class TestRedisRefuses:
    def test_a_wrong_or_missing_password_is_a_users_mistake_and_is_not_shown(self) -> None:
        server = servers.fresh_redis()
        try:
            with Redis(port=server.port) as client:
                client.config_set("requirepass", "right")
            asyncio.run(opened(f"redis://:right@127.0.0.1:{server.port}/0"))
            for user in ("", ":secret@", "somebody:secret@"):
                with pytest.raises(UserError, match="refuses the user or the password") as caught:
                    asyncio.run(opened(f"redis://{user}127.0.0.1:{server.port}/0"))
                assert "secret" not in str(caught.value)
        finally:
            server.close()

    @pytest.mark.parametrize("url", ["redis://h:port/0", "redis://h/0?no_such_option=1", "redis://h?socket_timeout=x"])
    @on_loop
    async def test_a_url_that_cannot_be_used_is_a_users_mistake(self, url: str) -> None:
        with pytest.raises(UserError, match="cannot be used"):
            await opened(url)


async def opened(url: str) -> None:
    async with RedisCacheBackend(url):
        pass
