"""A pool over memory adapters whose evaluator does as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from evaluator_svc.canary import Finding
from evaluator_svc.evaluators import Evaluates
from evaluator_svc.observer import Counts, Happening
from evaluator_svc.pool import Worker
from evaluator_svc.settings import CanaryLimits, PoolLimits, Settings
from evaluator_svc.stages import Stopwatch
from shared import envelopes, topics, wire
from shared.clock import ManualClock, SystemClock
from shared.events import (
    Envelope,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    KernelRef,
    OperatorRef,
    Purpose,
    Status,
)
from shared.ports import Ports, open_ports
from shared.settings import PortSettings

CHIP = "simulated"
TOPIC = topics.evaluation_requests(CHIP)
QUICK = PoolLimits(
    slots=1, settle_s=0.01, poll_wait_s=0.02, claim_wait_s=0.02, grace_s=0.05, drain_s=0.05, claim_ttl_s=1.0
)
FAILED = Evaluation(status=Status.WRONG_RESULT)


def request(name: str, *, search: str = "search", candidate: str = "", priority: int = 0) -> EvaluationRequested:
    """Requests of one ``candidate`` share a partition."""
    return EvaluationRequested(
        search_id=search,
        evaluation_id=name,
        candidate_id=candidate or f"candidate of {name}",
        kernel=KernelRef(kernel_id=f"kernel of {name}", language="cpp", source_hash=f"source of {name}"),
        operator=OperatorRef(name="toy", source_hash="operator"),
        chip=CHIP,
        purpose=Purpose.SEARCH,
        priority=priority,
    )


def enveloped(asked: EvaluationRequested) -> Envelope:
    return envelopes.envelope(asked, cause_id=f"cause of {asked.evaluation_id}", source="/test", clock=SystemClock())


class Puppet:
    """Evaluates as ``act`` does, FAILED at once by default; ``begun`` has the evaluation ids in order."""

    def __init__(self, settings: Settings, act: Callable[[str], Awaitable[Any]] | None = None) -> None:
        self.settings, self._act = settings, act
        self.begun: list[str] = []
        self.probes: list[bool] = []
        self.findings: list[Finding] = []
        """Of the next probes; after them, all is well."""

    async def admit(self, operator: OperatorRef, threads: int) -> None:
        """Anything."""

    async def ready(self):
        return None

    async def probe(self, *, thorough: bool) -> Finding:
        self.probes.append(thorough)
        return self.findings.pop(0) if self.findings else Finding()

    async def close(self) -> None:
        """Nothing."""

    async def evaluate(self, asked: EvaluationRequested, watch: Stopwatch | None = None) -> Evaluation:
        self.begun.append(asked.evaluation_id)
        assert watch is not None
        with watch.span("correctness"):
            made = await self._act(asked.evaluation_id) if self._act is not None else None
        return made if isinstance(made, Evaluation) else FAILED


@dataclass(kw_only=True)
class Pool:
    """Open ports and the workers started on them."""

    ports: Ports

    async def publish(self, *asked: EvaluationRequested) -> None:
        for each in asked:
            await self.ports.bus.publish(TOPIC, wire.encode(enveloped(each)))

    @asynccontextmanager
    async def worker(
        self,
        act: Callable[[str], Awaitable[Any]] | None = None,
        *,
        ports: Ports | None = None,
        evaluator: Evaluates | None = None,
        when_stuck: Callable[[], None] = lambda: None,
        canary: CanaryLimits | None = None,
        findings: Sequence[Finding] = (),
        leaves_when_out: bool = False,
        **limits: Any,
    ) -> AsyncIterator[RunningWorker]:
        """A worker for the length of the block, which drains it."""
        settings = Settings(chip=CHIP, pool=replace(QUICK, **limits), canary=canary or CanaryLimits())
        puppet = Puppet(settings, act)
        puppet.findings.extend(findings)
        worker = Worker(
            ports or self.ports,
            evaluator or puppet,
            observer=Counts(),
            when_stuck=when_stuck,
            leaves_when_out=leaves_when_out,
        )
        stop = asyncio.Event()
        task = asyncio.create_task(worker.run(stop))
        running = RunningWorker(worker=worker, puppet=puppet, task=task, stop=stop)
        try:
            yield running
        finally:
            stop.set()
            await asyncio.wait({task})
        if not running.failure_expected:
            task.result()

    async def answers(self, count: int, group: str = "test") -> list[Envelope]:
        """The next ``count`` verdicts of ``group``."""
        found: list[Envelope] = []
        async with self.ports.bus.subscribe(topics.FACTS, group) as facts:
            while len(found) < count:
                delivery = await facts.poll(1.0)
                if delivery is not None:
                    found.append(wire.decode(delivery.record))
                    await facts.commit(delivery)
        return found

    async def answered(self) -> list[str]:
        """Evaluation ids of every verdict so far, in order."""
        found = [wire.decode(each.record).event async for each in self.ports.bus.history(topics.FACTS)]
        return [event.evaluation_id for event in found if isinstance(event, EvaluationCompleted)]


@dataclass(kw_only=True)
class RunningWorker:
    worker: Worker
    puppet: Puppet
    task: asyncio.Task[None]
    stop: asyncio.Event
    failure_expected: bool = False

    def count(self, what: Happening) -> int:
        assert isinstance(self.worker.observer, Counts)
        return self.worker.observer.happenings[what]


@asynccontextmanager
async def pool(clock: ManualClock | None = None) -> AsyncIterator[Pool]:
    async with open_ports(PortSettings(store_url="memory:"), clock) as ports:
        yield Pool(ports=ports)


def verdict(envelope: Envelope) -> Evaluation:
    assert isinstance(envelope.event, EvaluationCompleted)
    return envelope.event.evaluation


def evidence(evaluation: Evaluation) -> dict[str, str]:
    return {entry.name: entry.value for entry in evaluation.evidence}
