"""A small cluster in one virtual-time loop: the real search service on the real memory adapters, with faults between.

Two search processes share the consumer group, and a third joins and leaves it all the time with the trees it had
before: partitions move in the middle of handlers, and two owners decide on one search. Two synthesizers and two
evaluators answer. Somebody resumes what has paused. Every process is restarted by a supervisor. ``checks`` reads the
outcome.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from search_svc import service
from search_svc.owner import Owner
from search_svc.settings import Settings
from shared import topics, wire
from shared.bus import Subscription
from shared.bus.memory import MemoryBus
from shared.cache.memory import MemoryCacheBackend
from shared.clock import ManualClock
from shared.consume import ConsumeLimits, Consumer, Handler
from shared.events import Envelope, SearchFinished, SearchPaused, SearchResumed, SearchStarted
from shared.ports import Ports
from shared.store import Journal
from shared.store.memory import MemoryStore
from tests.builders import SECOND_NS, enveloped
from tests.fakes.landscape import Landscape
from tests.sim.faults import Crash, Faults, FaultyBus, FaultyJournal, FaultyStore, FaultySubscription
from tests.sim.loop import run
from tests.sim.workers import Workers

HORIZON_S = 4_000
"""Virtual time after which a search counts as stalled."""
SETTLED_S = 300
"""Virtual time the world goes on after the last search finished, faults off, so that late facts arrive."""
WATCH_S = 20
VISIT_S = (1, 15)
"""Bounds of how long the visitor stays, and stays away."""
LIMITS = ConsumeLimits(poll_wait_s=5.0, drain_s=30.0)
IN_FLIGHT = 4
"""Records in hand of every member: partitions side by side."""
GROUPS = {"synthesizer": topics.SYNTHESIS_REQUESTS, "evaluator": topics.evaluation_requests("cpu-x86_64")}


class Stalled(AssertionError):
    """A search did not finish within the horizon."""


@dataclass
class Recipe:
    """The parts of the recipe a mutation replaces; the defaults are the real thing."""

    owner: type[Owner] = Owner
    journal: Callable[[Journal], Journal] = lambda journal: journal
    subscription: Callable[[Subscription], Subscription] = lambda subscription: subscription


@dataclass
class World:
    """One simulated run. After ``play``, ``bus.published`` and ``store.journal`` are what happened."""

    seed: int
    searches: tuple[SearchStarted, ...]
    crash_rate: float = 0.02
    recipe: Recipe = field(default_factory=Recipe)
    landscape: Landscape = field(default_factory=Landscape)

    def play(self) -> World:
        run(self.seed, self._main())
        return self

    async def _main(self) -> None:
        self.faults = Faults(self.seed, self.crash_rate, twice=0.1)
        clock = ManualClock()
        self.inner, self.store = MemoryBus(clock=clock), MemoryStore()
        self.bus = FaultyBus(self.inner, self.faults, self.store.journal)
        self.workers = Workers(self.bus, self.faults, self.landscape)
        self.journal = FaultyJournal(self.recipe.journal(self.store.journal), self.faults)
        self.ports = Ports(
            bus=self.bus, store=FaultyStore(self.store, self.journal), cache=MemoryCacheBackend(clock), clock=clock
        )
        async with self.inner, self.store, asyncio.TaskGroup() as group:
            processes = [group.create_task(self._supervise(process)) for process in self._processes()]
            for search in self.searches:
                await self.inner.publish(topics.FACTS, wire.encode(enveloped(search)))
                self.bus.published.append(enveloped(search))
            await self._watch()
            for task in processes:
                task.cancel()

    def _processes(self) -> list[Callable[[], Awaitable[None]]]:
        handlers = {"synthesizer": self.workers.synthesize, "evaluator": self.workers.evaluate}
        workers = [self._worker(name, handlers[name]) for name in GROUPS for _ in range(2)]
        return [self._search, self._search, self._visitor, self._person, *workers]

    async def _search(self) -> None:
        """One life of a search process: a fresh owner, recovery, then facts until it dies."""
        owner = self.recipe.owner(self.ports, Settings())
        await owner.recover()
        await self._consume(topics.FACTS, service.GROUP, owner.on_fact, self.recipe.subscription)

    async def _visitor(self) -> None:
        """A search process that keeps leaving the group and coming back, its memory ever more out of date."""
        owner = self.recipe.owner(self.ports, Settings())
        await owner.recover()
        while True:
            stop = asyncio.Event()
            asyncio.get_running_loop().call_later(self.faults.rng.uniform(*VISIT_S), stop.set)
            await self._consume(topics.FACTS, service.GROUP, owner.on_fact, self.recipe.subscription, stop)
            await asyncio.sleep(self.faults.rng.uniform(*VISIT_S))

    async def _person(self) -> None:
        """Resumes every search that waits, some time after it paused; not always sure of having done so already."""
        while True:
            await asyncio.sleep(self.faults.rng.uniform(*VISIT_S))
            for search in self.searches:
                last = [command async for command in self._commands(search.search_id)][-1:]
                if last and isinstance(last[0].event, SearchPaused):
                    now_ns = int(asyncio.get_running_loop().time()) * SECOND_NS
                    resumed = SearchResumed(search_id=search.search_id, at_ns=now_ns)
                    await self.bus.publish(topics.FACTS, wire.encode(enveloped(resumed, cause_id=last[0].id)))

    async def _commands(self, search_id: str) -> AsyncIterator[Envelope]:
        async for entry in self.store.journal.read(search_id):
            for command in entry.commands:
                yield wire.unpack(command)

    def _worker(self, name: str, handler: Handler) -> Callable[[], Awaitable[None]]:
        async def life() -> None:
            await self._consume(GROUPS[name], name, handler, lambda subscription: subscription)

        return life

    async def _consume(
        self,
        topic: str,
        group: str,
        handler: Handler,
        wrap: Callable[[Subscription], Subscription],
        stop: asyncio.Event | None = None,
    ) -> None:
        subscription = wrap(FaultySubscription(self.inner.subscribe(topic, group), self.faults))
        async with subscription:
            consumer = Consumer(
                bus=self.bus,
                subscription=subscription,
                handler=handler,
                clock=self.ports.clock,
                limits=LIMITS,
                in_flight=IN_FLIGHT,
                jitter=random.Random(self.seed),
            )
            await consumer.run(stop or asyncio.Event())

    async def _supervise(self, life: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await life()
            except Crash:
                await asyncio.sleep(self.faults.rng.uniform(1, 60))

    async def _watch(self) -> None:
        """Until every search has finished and the world has settled."""
        loop = asyncio.get_running_loop()
        while not await self._finished():
            if loop.time() > HORIZON_S:
                raise Stalled(f"seed {self.seed}: not finished after {HORIZON_S} s")
            await asyncio.sleep(WATCH_S)
        self.faults.off()
        await asyncio.sleep(SETTLED_S)

    async def _finished(self) -> bool:
        return all([await self._has_finish(search.search_id) for search in self.searches])

    async def _has_finish(self, search_id: str) -> bool:
        return any([isinstance(command.event, SearchFinished) async for command in self._commands(search_id)])
