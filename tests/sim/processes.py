"""Processes that die, stop and go on at any port call, and back ends that lose what they hold."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from shared import wire
from shared.bus import Delivery, Record
from shared.bus.memory import MemoryBus
from shared.cache import Claim, Work
from shared.cache.memory import MemoryCache, MemoryLeases
from shared.cache.memory_queues import MemoryWorkQueues
from shared.clock import SECOND_NS, Clock
from shared.errors import Unavailable
from shared.events import Envelope
from tests.sim.faults import Crash

LATENCY_S = 0.05
"""Longest way to or from a back end."""


class LoopClock:
    """The virtual loop's time, for everything that asks a clock."""

    def now_ns(self) -> int:
        return 10**18 + self.monotonic_ns()

    def monotonic_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * SECOND_NS)


class Process:
    """One life of one process. Everything it does passes ``point``, where it can die or stand still."""

    def __init__(self, name: str, rng: random.Random, crash_rate: Callable[[], float]) -> None:
        self.name, self._rng, self._crash_rate = name, rng, crash_rate
        self.dead = False
        self.thawed = asyncio.Event()
        self.thawed.set()

    async def point(self) -> None:
        """One side of a port call."""
        if not self.dead:
            await asyncio.sleep(self._rng.random() * LATENCY_S)
            await self.thawed.wait()
            self.dead = self.dead or self._rng.random() < self._crash_rate()
        if self.dead:
            raise Crash


class Through:
    """A port as ``process`` reaches it: every call passes ``point`` before and after it takes effect."""

    def __init__(self, process: Process, port: Any) -> None:
        self._process, self._port = process, port

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            await self._process.point()
            result = await method(*arguments, **named)
            await self._process.point()
            return result

        async def items(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
            await self._process.point()
            async for item in method(*arguments, **named):
                yield item

        if name in ("read", "scan", "history"):
            return items
        return method if name in ("subscribe", "pause", "resume", "lag") else call


class LossyBus:
    """A memory bus whose broker can be away and come back empty; ``published`` is all that it ever took."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.broker, self.life = MemoryBus(clock=clock), 0
        self.gone = False
        self.published: list[Envelope] = []
        self.orphans: list[str] = []
        self.watching: Callable[[Envelope], None] = lambda _: None

    async def lose(self) -> None:
        """Another broker under the same address."""
        self.broker, self.life = MemoryBus(clock=self._clock), self.life + 1
        await self.broker.__aenter__()

    def check(self) -> None:
        if self.gone:
            raise Unavailable("no broker")

    async def publish(self, topic: str, record: Record) -> None:
        self.check()
        await self.broker.publish(topic, record)
        envelope = wire.decode(record)
        self.published.append(envelope)
        self.watching(envelope)

    def subscribe(self, topic: str, group: str) -> LossySubscription:
        return LossySubscription(self, topic, group)


class LossySubscription:
    """A member that finds the new broker by polling it, as the adapter of a cluster does."""

    def __init__(self, bus: LossyBus, topic: str, group: str) -> None:
        self._bus, self._where = bus, (topic, group)
        self._life = -1
        self._handed: dict[int, int] = {}
        self._paused = False

    async def __aenter__(self) -> Self:
        self._bus.check()
        await self._join()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._life == self._bus.life:
            await self._inner.__aexit__(*exc)

    async def _join(self) -> None:
        self._inner = self._bus.broker.subscribe(*self._where)
        await self._inner.__aenter__()
        self._life, self._handed = self._bus.life, {}
        if self._paused:
            self._inner.pause()

    async def poll(self, wait_s: float) -> Delivery | None:
        self._bus.check()
        if self._life != self._bus.life:
            await self._join()
        delivery = await self._inner.poll(wait_s)
        if delivery is not None:
            self._handed[delivery.partition] = delivery.offset + 1
        return delivery

    def pause(self) -> None:
        self._paused = True
        self._inner.pause()

    def resume(self) -> None:
        self._paused = False
        self._inner.resume()

    async def commit(self, delivery: Delivery) -> bool:
        self._bus.check()
        current = self._life == self._bus.life and delivery.offset < self._handed.get(delivery.partition, 0)
        return current and await self._inner.commit(delivery)

    def lag(self) -> int:
        return self._inner.lag()


class LossyCache:
    """Values, leases and queues of a server that can be away and come back empty; watches who is served and renewed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.gone = False
        self.renewed_s: dict[int, float] = {}
        """Token -> when its claim was last renewed."""
        self.passed_over: Counter[str] = Counter()
        """Work id, first time it waits -> claims of other flows since."""
        self.flows: dict[str, str] = {}
        self.passed_over_most = 0
        self.queues = self
        self.lose()

    def lose(self) -> None:
        self._queues, self._leases = MemoryWorkQueues(self._clock), MemoryLeases(self._clock)
        self._values = MemoryCache(self._clock)
        self.passed_over.clear()

    @property
    def leases(self) -> Any:
        self.check()
        return self._leases

    def check(self) -> None:
        if self.gone:
            raise Unavailable("no cache")

    async def get(self, key: str) -> bytes | None:
        self.check()
        return await self._values.get(key)

    async def put(self, key: str, value: bytes, ttl_s: float | None = None) -> None:
        self.check()
        await self._values.put(key, value, ttl_s)

    async def add(self, queue: str, work: Work) -> bool:
        self.check()
        added = await self._queues.add(queue, work)
        if added:
            self.flows[work.id] = work.flow
            self.passed_over[work.id] = 0
        return added

    async def claim(self, queue: str, worker: str, ttl_s: float, wait_s: float) -> Claim | None:
        self.check()
        queues = self._queues
        claim = await queues.claim(queue, worker, ttl_s, wait_s)
        if claim is not None and queues is self._queues:
            self.passed_over.pop(claim.work.id, None)
            for each in self.passed_over:
                self.passed_over[each] += self.flows[each] != self.flows[claim.work.id]
            heads = {self.flows[each]: count for each, count in reversed(self.passed_over.items())}
            self.passed_over_most = max(self.passed_over_most, *heads.values(), 0)
        return claim

    async def renew(self, queue: str, claim: Claim, ttl_s: float) -> bool:
        self.check()
        held = await self._queues.renew(queue, claim, ttl_s)
        if held:
            self.renewed_s[claim.token] = asyncio.get_running_loop().time()
        return held

    async def finish(self, queue: str, claim: Claim, cost_ns: int) -> bool:
        self.check()
        return await self._queues.finish(queue, claim, cost_ns)

    async def give_back(self, queue: str, claim: Claim) -> bool:
        self.check()
        return await self._queues.give_back(queue, claim)

    async def states(self, queue: str, ids: list[str]) -> Any:
        self.check()
        return await self._queues.states(queue, ids)

    async def depth(self, queue: str) -> Any:
        return await self._queues.depth(queue)
