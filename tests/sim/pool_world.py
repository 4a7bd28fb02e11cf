"""A cluster in one virtual-time loop: search replicas with submissions and sweeper, and a pool of evaluator workers.

The real intake, slots, queues, owner, submissions and sweeper, on memory adapters. Processes are killed and frozen at
any port call, workers are told to stop, cache and broker go away and come back empty. A ``calm`` world has no deaths,
no empty broker and no sweeper: there the pool alone must bring every request to its end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Self

from evaluator_svc.canary import Finding
from evaluator_svc.intake import Intake
from evaluator_svc.observer import Counts
from evaluator_svc.quarantine import Quarantine
from evaluator_svc.settings import CanaryLimits, PoolLimits
from evaluator_svc.settings import Settings as EvaluatorSettings
from evaluator_svc.slot import Slot
from search_svc import replica
from search_svc.index import COLLECTION
from search_svc.service import GROUP
from search_svc.settings import Settings
from search_svc.submissions import OPEN
from shared import envelopes, ids, topics, wire
from shared.consume import ConsumeLimits, Consumer, Handler
from shared.errors import Unavailable
from shared.events import (
    Entry,
    Envelope,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    ExpansionRequested,
    SearchStarted,
    Status,
)
from shared.ports import Ports
from shared.store.memory import MemoryStore
from tests.builders import a_failure, enveloped
from tests.fakes.landscape import Landscape
from tests.sim.faults import Crash
from tests.sim.loop import run
from tests.sim.processes import LoopClock, LossyBus, LossyCache, Process, Through
from tests.sim.world import Stalled

CHIP = "cpu-x86_64"
HORIZON_S = 1_200
WATCH_S = 10
SETTLED_S = 200
SWEEPING = Settings(sweep_s=5.0, ask_again_after_s=30.0, ask_again_max_s=120.0)
NEVER_AGAIN = Settings(sweep_s=5.0, ask_again_after_s=1e6, ask_again_max_s=1e6)
POOL = PoolLimits(
    slots=1, settle_s=2.0, poll_wait_s=2.0, claim_wait_s=2.0, claim_ttl_s=15.0, drain_s=10.0, deliveries_max=10
)
LIMITS = ConsumeLimits(poll_wait_s=5.0, drain_s=10.0)
LATENCIES_S = (1, 3, 10)
UNMEASURED = 0.05
"""Chance that one measurement does not count."""
STEP_S = (2, 15)
"""Bounds of the pause between two mishaps."""
FROZEN_S = (5, 60)
AWAY_S = (1, 25)
WORKERS = 3


@dataclass
class Parts:
    """What a mutation replaces; the defaults are the real thing."""

    intake: type[Intake] = Intake
    slot: type[Slot] = Slot
    queues: Callable[[LossyCache], Any] = lambda queues: queues
    sweeping: Settings = SWEEPING


@dataclass
class PoolWorld:
    """One simulated run. After ``play``, ``bus.published`` and ``store.journal`` are what happened."""

    seed: int
    wishes: tuple[SearchStarted, ...]
    calm: bool = False
    parts: Parts = field(default_factory=Parts)
    landscape: Landscape = field(default_factory=Landscape)
    crashes: int = 0
    fenced: int = 0
    runs: int = 0

    def play(self) -> PoolWorld:
        before = random.getstate()
        random.seed(self.seed)  # what spreads retries
        try:
            run(self.seed, self._main())
        finally:
            random.setstate(before)
        return self

    async def _main(self) -> None:
        self.rng = random.Random(self.seed)
        self.crash_rate = 0.0 if self.calm else 0.002
        self.clock = LoopClock()
        self.bus, self.cache, self.store = LossyBus(self.clock), LossyCache(self.clock), MemoryStore()
        self.bus.watching = self._published
        self.unfenced: list[str] = []
        self.judged_s: dict[tuple[str, str], float] = {}
        """Evaluation and worker -> when it was measured there last."""
        self.searches: list[SearchStarted] = []
        self.replicas: dict[str, replica.Replica] = {}
        self.workers: dict[str, tuple[Process, asyncio.Event]] = {}
        lives = [(f"search-{n}", self._search) for n in range(2)]
        lives += [("synthesizer", self._synthesizer)]
        lives += [(f"worker-{n}", self._worker) for n in range(WORKERS)]
        async with self.bus.broker, asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._supervise(name, life)) for name, life in lives]
            clients = [group.create_task(self._client(wish)) for wish in self.wishes]
            mishaps = group.create_task(self._mishaps())
            await asyncio.wait(clients)
            await self._watch(mishaps)
            for task in tasks:
                task.cancel()

    # Processes -------------------------------------------------------------------------------------------------

    async def _supervise(self, name: str, life: Callable[[Process], Awaitable[None]]) -> None:
        number = 0
        while True:
            number += 1
            process = Process(f"{name}.{number}", self.rng, lambda: self.crash_rate)
            try:
                await life(process)
            except Crash:
                self.crashes += 1
            except BaseExceptionGroup as several:
                if several.split(Crash)[1] is not None:
                    raise
                self.crashes += 1
            process.dead = True
            await asyncio.sleep(self.rng.uniform(1, 30))

    def _ports(self, process: Process) -> Ports:
        documents, journal = (Through(process, port) for port in (self.store.documents, self.store.journal))
        store = SimpleNamespace(documents=documents, journal=journal, blobs=self.store.blobs)
        queues = Through(process, self.parts.queues(self.cache))
        cache = SimpleNamespace(queues=queues, leases=_Leases(process, self.cache), cache=Through(process, self.cache))
        return Ports(bus=_Bus(process, self.bus), store=store, cache=cache, clock=self.clock)  # type: ignore[arg-type]

    async def _search(self, process: Process) -> None:
        ports = self._ports(process)
        settings = NEVER_AGAIN if self.calm else self.parts.sweeping
        parts = self.replicas[process.name.partition(".")[0]] = replica.assemble(ports, settings)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._consume(ports, topics.FACTS, GROUP, parts.on_fact))
            group.create_task(parts.sweeper.run(asyncio.Event()))

    async def _synthesizer(self, process: Process) -> None:
        ports = self._ports(process)

        async def write(envelope: Envelope) -> None:
            assert isinstance(envelope.event, ExpansionRequested)
            await asyncio.sleep(self.rng.random())  # much faster than the pool: requests queue up there
            for fact in self.landscape.synthesize(envelope.event):
                answer = enveloped(fact)
                await ports.bus.publish(envelopes.topic_of(answer.event), wire.encode(answer))

        await self._consume(ports, topics.SYNTHESIS_REQUESTS, "synthesizer", write)

    async def _worker(self, process: Process) -> None:
        ports, stop, counts = self._ports(process), asyncio.Event(), Counts()
        self.workers[process.name.partition(".")[0]] = (process, stop)
        common: dict[str, Any] = {"chip": CHIP, "limits": POOL, "observer": counts}
        intake = self.parts.intake(bus=ports.bus, queues=ports.cache.queues, clock=self.clock, **common)
        evaluator = _Evaluator(self, process)
        quarantine = Quarantine(CanaryLimits(failures_in_a_row=10**9))
        quarantine.probed(Finding(), 0.0, thorough=True)
        common |= {"evaluator": evaluator, "worker": process.name, "quarantine": quarantine}
        slots = [self.parts.slot(ports=ports, **common) for _ in range(POOL.slots)]
        try:
            async with asyncio.TaskGroup() as group:
                for part in (intake, *slots):
                    group.create_task(part.run(stop))
        finally:
            self.fenced += sum(count for what, count in counts.happenings.items() if what.value == "fenced")

    async def _consume(self, ports: Ports, topic: str, group: str, handler: Handler) -> None:
        async with AsyncExitStack() as stack:
            subscription = ports.bus.subscribe(topic, group)
            while True:
                try:
                    await stack.enter_async_context(subscription)
                    break
                except Unavailable:
                    await asyncio.sleep(1)
            consumer = Consumer(
                bus=ports.bus,
                subscription=subscription,
                handler=handler,
                clock=self.clock,
                limits=LIMITS,
                in_flight=16,
                jitter=random.Random(self.seed),
            )
            await consumer.run(asyncio.Event())

    # What happens to them --------------------------------------------------------------------------------------

    async def _client(self, wish: SearchStarted) -> None:
        """Submits until somebody says that it worked."""
        search_id = ids.derive("search", wish.search_id)
        self.searches.append(replace(wish, search_id=search_id))
        while True:
            await asyncio.sleep(self.rng.uniform(0, 5))
            try:
                any_replica = self.rng.choice(list(self.replicas.values()))
                await any_replica.submissions.submit(wish, request_id=wish.search_id, fingerprint="")
            except (Crash, Unavailable):
                continue
            return

    async def _mishaps(self) -> None:
        kinds = [self._freeze, self._freeze, self._cache_away, self._cache_empty]
        kinds += [] if self.calm else [self._drain, self._broker_away, self._broker_empty]
        while True:
            await asyncio.sleep(self.rng.uniform(*STEP_S))
            await self.rng.choice(kinds)()

    async def _freeze(self) -> None:
        process, _ = self.rng.choice(list(self.workers.values()))
        process.thawed.clear()
        asyncio.get_running_loop().call_later(self.rng.uniform(*FROZEN_S), process.thawed.set)

    async def _drain(self) -> None:
        _, stop = self.rng.choice(list(self.workers.values()))
        stop.set()

    async def _cache_away(self) -> None:
        self.cache.gone = True
        await asyncio.sleep(self.rng.uniform(*AWAY_S))
        self.cache.gone = False

    async def _cache_empty(self) -> None:
        await self._cache_away()
        self.cache.lose()

    async def _broker_away(self) -> None:
        self.bus.gone = True
        await asyncio.sleep(self.rng.uniform(*AWAY_S))
        self.bus.gone = False

    async def _broker_empty(self) -> None:
        await self._broker_away()
        await self.bus.lose()

    def _published(self, envelope: Envelope) -> None:
        """A verdict may leave its worker only when its claim was renewed after it was made."""
        if not isinstance(envelope.event, EvaluationCompleted):
            return
        judged_s = self.judged_s.get((envelope.event.evaluation_id, envelope.source), 0.0)
        if self.cache.renewed_s.get(int(envelope.lease), -1.0) < judged_s:
            self.unfenced.append(envelope.subject)

    # The end ---------------------------------------------------------------------------------------------------

    async def _watch(self, mishaps: asyncio.Task[None]) -> None:
        loop = asyncio.get_running_loop()
        while not await self._finished():
            if loop.time() > HORIZON_S:
                raise Stalled(f"seed {self.seed}: not finished after {HORIZON_S} s")
            await asyncio.sleep(WATCH_S)
        mishaps.cancel()
        self.cache.gone = self.bus.gone = False
        self.crash_rate = 0.0
        await asyncio.sleep(SETTLED_S)
        self.depth = await self.cache.depth(CHIP)
        self.open = [each async for each, _ in self.store.documents.scan(OPEN)]
        self.rows = [row async for _, row in self.store.documents.scan(COLLECTION)]

    async def _finished(self) -> bool:
        rows = [row async for _, row in self.store.documents.scan(COLLECTION)]
        return sum(row["phase"] == "finished" for row in rows) == len(self.searches)


class _Evaluator:
    """Measures as the landscape says, and never twice the same: every verdict tells which run it is of."""

    def __init__(self, world: PoolWorld, process: Process) -> None:
        self._world, self._process = world, process
        self.settings = EvaluatorSettings(chip=CHIP, pool=POOL)

    async def evaluate(self, request: EvaluationRequested, watch: object = None) -> Evaluation:
        world = self._world
        world.runs += 1
        mark = Entry(name="run", value=str(world.runs))
        await asyncio.sleep(world.rng.choice(LATENCIES_S))
        await self._process.point()
        if world.rng.random() < UNMEASURED:
            made = a_failure(world.rng.choice((Status.NOISY, Status.INFRASTRUCTURE)))
        else:
            made = world.landscape.evaluate(request).evaluation
        where = f"/evaluator/{CHIP}/{self._process.name}"
        world.judged_s[request.evaluation_id, where] = asyncio.get_running_loop().time()
        return replace(made, evidence=(*made.evidence, mark))


class _Bus(Through):
    def subscribe(self, topic: str, group: str) -> _Subscription:
        return _Subscription(self._process, self._port.subscribe(topic, group))


class _Subscription(Through):
    async def __aenter__(self) -> Self:
        await self._process.point()
        await self._port.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._port.__aexit__(*exc)


class _Leases:
    def __init__(self, process: Process, cache: LossyCache) -> None:
        self._process, self._cache = process, cache

    async def acquire(self, name: str, owner: str, ttl_s: float) -> int | None:
        await self._process.point()
        return await self._cache.leases.acquire(name, owner, ttl_s)
