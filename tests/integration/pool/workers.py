"""Worker processes of the simulated chip over real servers, and the verdicts they publish."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.local.layout import TUNED
from shared import envelopes, ids, topics, wire
from shared.clock import SystemClock
from shared.events import Envelope, EvaluationCompleted, EvaluationRequested, KernelRef, OperatorRef, Purpose
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from tests import servers

CHIP = "simulated"
LOOK_S = 0.1
KILL, STOP, CONTINUE, END = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM
KAFKA = {**TUNED, "KAFKA_SESSION_TIMEOUT_MS": "1200", "KAFKA_HEARTBEAT_INTERVAL_MS": "200"}
LIMITS = {
    "EVALUATOR_CHIP": CHIP,
    "EVALUATOR_SLOTS": "2",
    "EVALUATOR_CLAIM_TTL_S": "1.0",
    "EVALUATOR_SETTLE_S": "0.2",
    "EVALUATOR_GRACE_S": "0.3",
    "EVALUATOR_DRAIN_S": "10",
    "SIMULATED_MEDIAN_S": "0.05",
    "SIMULATED_LONGEST_S": "0.5",
    "SIMULATED_FAILING": "0",
}


@dataclass(frozen=True, kw_only=True)
class Servers:
    """A database and a broker of their own for a test module, and a cache for a test."""

    bus_url: str
    store_url: str
    cache: servers.Server

    @property
    def cache_url(self) -> str:
        return f"redis://127.0.0.1:{self.cache.port}/0"

    @property
    def environment(self) -> dict[str, str]:
        return {"BUS_URL": self.bus_url, "STORE_URL": self.store_url, "CACHE_URL": self.cache_url, **KAFKA}


class WorkerProcess:
    """``python -m evaluator_svc`` that ends with the test."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.log = Path(tempfile.mkstemp(prefix="kernelevolve-worker-", suffix=".log")[1])
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "evaluator_svc"],
                env={**os.environ, **LIMITS, **environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def name(self) -> str:
        """The part of its worker id that says which process it is."""
        return f"-{self.process.pid}-"

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        while (code := self.process.poll()) is None:
            await asyncio.sleep(LOOK_S)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.unlink()


@contextmanager
def workers(made: Servers, count: int, **limits: str) -> Iterator[list[WorkerProcess]]:
    running = [WorkerProcess({**made.environment, **limits}) for _ in range(count)]
    try:
        yield running
    finally:
        for each in running:
            each.close()


@dataclass(kw_only=True)
class Asking:
    """Publishes requests under names of its own, and reads what was answered."""

    ports: Ports
    test: str

    async def ask(self, *names: str, text: str = "") -> None:
        for name in names:
            source = await self.ports.store.blobs.put(f"// {self.test} {name} {text}".encode())
            request = EvaluationRequested(
                search_id=self.test,
                evaluation_id=f"{self.test} {name}",
                candidate_id=f"{self.test} {name}",
                kernel=KernelRef(kernel_id=ids.derive(source), language="cpp", source_hash=source),
                operator=OperatorRef(name="toy", source_hash="toy"),
                chip=CHIP,
                purpose=Purpose.SEARCH,
            )
            letter = envelopes.envelope(request, cause_id=request.evaluation_id, source="/test", clock=SystemClock())
            await self.ports.bus.publish(topics.evaluation_requests(CHIP), wire.encode(letter))

    async def answers(self) -> dict[str, list[Envelope]]:
        """Every verdict so far by the name asked under."""
        found: dict[str, list[Envelope]] = {}
        async for delivery in self.ports.bus.history(topics.FACTS, self.test):
            envelope = wire.decode(delivery.record)
            if isinstance(envelope.event, EvaluationCompleted):
                found.setdefault(envelope.event.evaluation_id.removeprefix(f"{self.test} "), []).append(envelope)
        return found

    async def answered(self, *names: str, count: int = 0) -> dict[str, list[Envelope]]:
        """Waits until there is a verdict on all of ``names``, or on ``count`` of anything."""
        while True:
            found = await self.answers()
            if found.keys() >= set(names) and len(found) >= count:
                return found
            await asyncio.sleep(LOOK_S)


@asynccontextmanager
async def asking(made: Servers, test: str) -> AsyncIterator[Asking]:
    settings = PortSettings(bus_url=made.bus_url, store_url=made.store_url, cache_url=made.cache_url)
    async with open_ports(settings) as ports:
        yield Asking(ports=ports, test=test)
