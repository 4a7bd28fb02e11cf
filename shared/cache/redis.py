"""The cache, the leases and the work queues in Redis 6 or newer, or Valkey; the only file that imports ``redis``.

The server must not evict keys (``maxmemory-policy noeviction``, the default): it may lose all of them at any moment,
which only costs time, but not some. What must happen at once happens in a Lua script; the server loses its scripts
with a restart, and they are sent again.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from shared.cache import Claim, Depth, Work, WorkState
from shared.cache.memory_queues import MICROSECOND_NS, SECOND_US, microseconds
from shared.errors import Fatal, KernelEvolveError, Unavailable, UserError

T = TypeVar("T")

PREFIX = "ke:"
CALL_S = 5.0
"""A server that is there answers in milliseconds. ``socket_timeout`` in the URL says otherwise."""
LISTEN_S = 2.0
"""How long a waiting claimer sleeps before it looks by itself: its bell may have rung for somebody who died."""
CONNECTIONS_MAX = 32
LISTENERS_MAX = 64
"""Queues this process can wait for at a time."""
POOL: dict[str, Any] = {
    "protocol": 2,
    "timeout": 10.0,  # for a free connection; the default, 20 s, is longer than callers wait to know
    "socket_connect_timeout": CALL_S,
    "health_check_interval": 15,  # a connection that idled behind a firewall may be dead without knowing
    # Once more on a new connection, because pooled ones die with a restarted server; a call that timed out may have
    # been carried out, and its caller decides.
    "retry": Retry(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,)),
}

REFUSED = (
    exceptions.AuthenticationError,
    exceptions.AuthenticationWrongNumberOfArgsError,
    exceptions.AuthorizationError,
    exceptions.NoPermissionError,
)
"""Errors that a person has to mend."""
PASSING = (
    exceptions.ConnectionError,  # loading and too many connections are kinds of it
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.TryAgainError,
    exceptions.OutOfMemoryError,
)
PASSING_WORDS = ("BUSY ", "MASTERDOWN", "MISCONF", "NOREPLICAS", "UNBLOCKED")
"""How errors without a class begin that end by themselves."""


def _times_cancelled() -> int:
    """How many cancellations of the current task nobody took back."""
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


class _Server:
    """The connections, the scripts and the errors. The URL is shown to people without its user and password."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self.prefix, self._answer_s = options.pop("prefix", PREFIX), options.pop("socket_timeout", CALL_S)
        self._url = parts._replace(query=urlencode(options)).geturl()
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._client: Redis | None = None
        self._listener: Redis | None = None
        self._sources = {name: _source(name) for name in SCRIPTS}
        self._scripts: dict[str, Callable[..., Awaitable[Any]]] = {}

    async def open(self) -> None:
        """May be tried again after ``Unavailable``. Raises ``UserError`` when the URL or we are refused."""
        try:
            answer_s = float(self._answer_s)
            self._client = self._connected(CONNECTIONS_MAX, answer_s)
            self._listener = self._connected(LISTENERS_MAX, answer_s + LISTEN_S)
            self._scripts = {name: self._client.register_script(text) for name, text in self._sources.items()}
            await self.call(lambda client: client.ping())
        except (TypeError, ValueError) as error:
            await self.close()
            raise UserError(f"cannot be used: {error}", where=f"CACHE_URL={self.shown}") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        clients, self._client, self._listener = (self._client, self._listener), None, None
        for client in clients:
            if client is not None:
                await client.aclose()

    async def call(self, work: Callable[[Redis], Awaitable[Any]]) -> Any:
        """Await ``work``.

        Raises:
            Unavailable: no answer, or one that says "not now".
            UserError: the server refuses us.
            Fatal: closed, or any other error.
        """
        return await self._awaited(self._client, work)

    async def script(self, name: str, keys: Sequence[str], *values: str | bytes | int) -> Any:
        """What the script ``name`` returns; raises like ``call``."""
        return await self.call(lambda client: self._scripts[name](keys=list(keys), args=list(values), client=client))

    async def listen(self, key: str, seconds: float) -> None:
        """Until the list ``key`` has had an element to take, or ``seconds`` have passed; raises like ``call``."""
        await self._awaited(self._listener, lambda client: client.blpop([key], timeout=max(seconds, 0.001)))

    def _connected(self, connections_max: int, answer_s: float) -> Redis:
        pool = BlockingConnectionPool.from_url(
            self._url, max_connections=connections_max, socket_timeout=answer_s, **POOL
        )
        return Redis.from_pool(pool)

    async def _awaited(self, client: Redis | None, work: Callable[[Redis], Awaitable[Any]]) -> Any:
        if client is None:
            raise Fatal(f"{self.shown} is closed")
        told = _times_cancelled()
        try:
            return await work(client)
        except exceptions.RedisError as error:
            raise self._translated(error) from error
        finally:
            # The client may take a cancellation for one of its own timeouts, and whoever cancelled would wait for ever.
            if _times_cancelled() > told:
                raise asyncio.CancelledError

    def _translated(self, error: exceptions.RedisError) -> KernelEvolveError:
        line = f"{self.shown}: {' '.join(str(error).split())}"
        if isinstance(error, REFUSED):
            return UserError(f"refuses the user or the password: {error}", where=f"CACHE_URL={self.shown}")
        passing = isinstance(error, PASSING) or str(error).startswith(PASSING_WORDS)
        return Unavailable(line) if passing else Fatal(line)


QUEUE_SCRIPTS = ("add", "claim", "renew", "finish", "give_back", "states", "depth")
SCRIPTS = (*(f"queue_{name}" for name in QUEUE_SCRIPTS), "lease_acquire", "lease_renew", "lease_release")


def _source(name: str) -> str:
    folder = resources.files("shared.cache")
    files = ["queue", name] if name.startswith("queue_") else [name]
    return "\n".join(folder.joinpath(f"{each}.lua").read_text(encoding="utf-8") for each in files)


class RedisCache:
    """See ``shared.cache.Cache``."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    async def get(self, key: str) -> bytes | None:
        value: bytes | None = await self._server.call(lambda client: client.get(self._name(key)))
        return value

    async def put(self, key: str, value: bytes, ttl_s: float | None = None) -> None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        expiry_ms = None if ttl_s is None else _milliseconds(ttl_s)
        await self._server.call(lambda client: client.set(self._name(key), value, px=expiry_ms))

    def _name(self, key: str) -> str:
        return f"{self._server.prefix}cache:{key}"


class RedisLeases:
    """See ``shared.cache.Leases``."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    async def acquire(self, name: str, owner: str, ttl_s: float) -> int | None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        keys = [self._key(name), f"{self._key(name)}:token"]
        token = await self._server.script("lease_acquire", keys, owner, _milliseconds(ttl_s))
        return None if token is None else int(token)

    async def renew(self, name: str, token: int, ttl_s: float) -> bool:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        return bool(await self._server.script("lease_renew", [self._key(name)], token, _milliseconds(ttl_s)))

    async def release(self, name: str, token: int) -> None:
        await self._server.script("lease_release", [self._key(name)], token)

    def _key(self, name: str) -> str:
        return f"{self._server.prefix}lease:{{{name}}}"


def _milliseconds(ttl_s: float) -> int:
    return max(1, microseconds(ttl_s) // 1000)


class RedisWorkQueues:
    """See ``shared.cache.WorkQueues``.

    Of the claimers of one process that wait for a queue, one listens at the server and the others wait for their turn
    to listen; so waiting costs one connection, and a look every ``LISTEN_S``.
    """

    def __init__(self, server: _Server, now_us: Callable[[], int] | None) -> None:
        self._server, self._now_us = server, now_us
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def add(self, queue: str, work: Work) -> bool:
        return bool(await self._script("add", queue, work.id, work.flow, work.priority, work.body))

    async def claim(self, queue: str, worker: str, ttl_s: float, wait_s: float) -> Claim | None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive.

        When the caller is cancelled, what was claimed for it meanwhile is given back.
        """
        ttl_us, clock = microseconds(ttl_s), asyncio.get_running_loop()
        deadline = clock.time() + wait_s
        found = await self._take(queue, worker, ttl_us)
        if isinstance(found, Claim) or wait_s <= 0:
            return found if isinstance(found, Claim) else None
        async with self._turn(queue, deadline) as mine:
            while mine:
                found = await self._take(queue, worker, ttl_us)
                left_s = deadline - clock.time()
                if isinstance(found, Claim):
                    return found
                if left_s <= 0:
                    break
                await self._server.listen(f"{self._key(queue)}:bells", min(left_s, found, LISTEN_S))
        return None

    async def renew(self, queue: str, claim: Claim, ttl_s: float) -> bool:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        return bool(await self._script("renew", queue, claim.work.id, claim.token, microseconds(ttl_s)))

    async def finish(self, queue: str, claim: Claim, cost_ns: int) -> bool:
        return bool(await self._script("finish", queue, claim.work.id, claim.token, cost_ns // MICROSECOND_NS))

    async def give_back(self, queue: str, claim: Claim) -> bool:
        return bool(await self._script("give_back", queue, claim.work.id, claim.token))

    async def states(self, queue: str, ids: Sequence[str]) -> Mapping[str, WorkState]:
        found = await self._script("states", queue, *ids)
        return {each: WorkState(state.decode()) for each, state in zip(ids, found, strict=True)}

    async def depth(self, queue: str) -> Depth:
        waiting, claimed = await self._script("depth", queue)
        return Depth(waiting=waiting, claimed=claimed)

    async def _take(self, queue: str, worker: str, ttl_us: int) -> Claim | float:
        """A claim, or the seconds until the next one expires."""
        taking = asyncio.ensure_future(self._script("claim", queue, worker, ttl_us))
        try:
            found = await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(Unavailable):
                taken = _claim(worker, await taking)
                if isinstance(taken, Claim):
                    await self.give_back(queue, taken)
            raise
        return _claim(worker, found)

    @asynccontextmanager
    async def _turn(self, queue: str, deadline: float) -> AsyncIterator[bool]:
        """The caller's turn to listen; False when ``deadline`` came first."""
        turn = self._turns[queue]
        try:
            async with asyncio.timeout_at(deadline):
                await turn.acquire()
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            turn.release()

    async def _script(self, name: str, queue: str, *values: str | bytes | int) -> Any:
        now = "" if self._now_us is None else self._now_us()
        return await self._server.script(f"queue_{name}", [self._key(queue)], now, *values)

    def _key(self, queue: str) -> str:
        return f"{self._server.prefix}queue:{{{queue}}}"


def _claim(worker: str, found: bytes | list[bytes]) -> Claim | float:
    """What ``queue_claim.lua`` answered: a claim, or the seconds until the next one expires."""
    if isinstance(found, bytes):
        next_us = int(found)
        return LISTEN_S if next_us < 0 else next_us / SECOND_US
    each, flow, priority, body, token, deliveries, lost_by = found
    return Claim(
        work=Work(id=each.decode(), flow=flow.decode(), body=body, priority=int(priority)),
        worker=worker,
        token=int(token),
        deliveries=int(deliveries),
        lost_by=tuple(json.loads(lost_by)) if lost_by else (),
    )


class RedisCacheBackend:
    """See ``shared.cache.CacheBackend``. Opening connects; after ``Unavailable`` it may be tried again.

    ``url`` is ``redis://[user:password@]host[:port][/number][?options]``, or ``rediss://…`` for TLS, with the options
    of redis-py and ``prefix``, which all keys begin with (``ke:``). ``now_us`` replaces the server's clock for the
    queues.

    Raises:
        UserError: on opening, a URL that cannot be used or a server that refuses us.
    """

    def __init__(self, url: str, now_us: Callable[[], int] | None = None) -> None:
        self._server = _Server(url)
        self.cache = RedisCache(self._server)
        self.leases = RedisLeases(self._server)
        self.queues = RedisWorkQueues(self._server, now_us)

    async def __aenter__(self) -> Self:
        await self._server.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.close()

    async def ping(self) -> None:
        await self._server.call(lambda client: client.ping())
