"""A cluster of its own for a chaos run, and how its processes are hurt."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from cli.client import KernelEvolveClient, open_client
from deploy.local.cluster import Cluster
from deploy.local.layout import SEARCH, Layout
from deploy.local.servers import HOST
from deploy.local.state import State
from evaluator_svc.simulated import HANGS
from shared.errors import UserError
from shared.events import EvaluationCompleted, Status
from shared.patience import patiently
from shared.ports import open_ports
from shared.rpc.settings import ClientSettings
from shared.settings import PortSettings
from tests.chaos.faults import CHIP, SEARCHES, Fault, Kind
from tests.integration.pool.workers import Asking

CLAIM_TTL_S = 3.0
DEADLINE_S = 6.0
GRACE_S = 1.0
DELIVERIES_MAX = 3
LONGEST_S = 3.0
HANG_LIMIT_S = DELIVERIES_MAX * (DEADLINE_S + GRACE_S + CLAIM_TTL_S) + (DELIVERIES_MAX + 1) * LONGEST_S
"""For a kernel that hangs every worker it is given to, by ``evaluator_svc.settings.PoolLimits``: what each delivery may
take, and before each and before the answer, a wait for a slot to be free.
"""
FROZEN_S = 2 * CLAIM_TTL_S
AWAY_S = 12.0
"""Longer than what drivers wait for an answer, and than a member of a group may be silent."""
LOOK_S = 0.1

ENVIRONMENT = {
    # What a search is told must not depend on which other search was faster.
    "KNOWLEDGE_LEARNING": "false",
    "EVALUATOR_CLAIM_TTL_S": str(CLAIM_TTL_S),
    "EVALUATOR_DEADLINE_S": str(DEADLINE_S),
    "EVALUATOR_GRACE_S": str(GRACE_S),
    "EVALUATOR_DELIVERIES_MAX": str(DELIVERIES_MAX),
    "SIMULATED_LONGEST_S": str(LONGEST_S),
    "SEARCH_SWEEP_S": "1",
    "SEARCH_ASK_AGAIN_AFTER_S": "5",
    "SEARCH_ASK_AGAIN_MAX_S": "20",
    # A simulated worker computes nothing: threads that libraries start would only compete for the cores.
    "OMP_NUM_THREADS": "1",
}
FENCED = "is lost, and what was made of it dropped"
"""A worker's log line about a result that came too late."""


class System:
    """A running cluster."""

    def __init__(self, cluster: Cluster, state: State) -> None:
        self.cluster, self.state = cluster, state

    @property
    def servers(self) -> str:
        """Every process of the search service, as gRPC names several addresses."""
        ports = [member.ports["grpc"] for member in self.state.members if member.name.startswith(SEARCH)]
        return "ipv4:" + ",".join(f"{HOST}:{port}" for port in ports)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[KernelEvolveClient]:
        async with open_client(ClientSettings(server=self.servers)) as client:
            yield client

    async def hurt(self, fault: Fault) -> None:
        """Do what ``fault`` says, and wait until the victim answers again; a hanging kernel, until it is given up."""
        match fault.kind:
            case Kind.KILL:
                await self._kill(fault.victim)
            case Kind.WIPE:
                await asyncio.to_thread(self._wipe, fault.victim)
            case Kind.FREEZE:
                await self._freeze(fault.victim, FROZEN_S)
            case Kind.SILENT:
                await self._freeze(fault.victim, AWAY_S)
            case Kind.AWAY:
                await self._be_away(fault.victim, fault.beside)
            case Kind.HANG:
                await self._hang()
                return
        await asyncio.to_thread(self.cluster.wait_until_ready, [each for each in (fault.victim, fault.beside) if each])

    async def _kill(self, victim: str, number: signal.Signals = signal.SIGKILL) -> None:
        while True:
            try:
                await asyncio.to_thread(self.cluster.kill, victim, number)
            except UserError:  # it is being started again
                await asyncio.sleep(LOOK_S)
            else:
                return

    def _wipe(self, victim: str) -> None:
        """Delete the data under a server and kill it: what it starts from again is nothing."""
        for each in (self.cluster.folder / victim).iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        self.cluster.kill(victim)

    async def _be_away(self, victim: str, beside: str) -> None:
        await asyncio.to_thread(self.cluster.stop, victim)
        try:
            await self._kill(beside)
            await asyncio.sleep(AWAY_S)
        finally:
            await asyncio.to_thread(self.cluster.start, victim)

    async def _freeze(self, victim: str, seconds: float) -> None:
        await self._kill(victim, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            await self._kill(victim, signal.SIGCONT)

    async def _hang(self) -> None:
        """Ask for the verdict on a kernel that hangs its worker, and wait for it."""
        name = f"hangs {time.monotonic_ns()}"
        state = self.state
        settings = PortSettings(bus_url=state.bus_url, store_url=state.store_url, cache_url=state.cache_url)
        async with open_ports(settings) as ports:
            asking = Asking(ports=ports, test=name)
            await patiently(lambda: asking.ask("it", text=HANGS), "ask for one")
            found = await patiently(lambda: asking.answered("it"), "the verdict on a kernel that hangs")
        event = found["it"][0].event
        assert isinstance(event, EvaluationCompleted)
        assert event.evaluation.status is Status.INFRASTRUCTURE, event.evaluation

    def log_lines(self, words: str) -> int:
        """How often the evaluators' logs say ``words``."""
        logs = (self.cluster.folder / "logs").glob(f"evaluator-{CHIP}-*.log")
        return sum(log.read_text(encoding="utf-8", errors="replace").count(words) for log in logs)

    def restarts(self) -> dict[str, int]:
        return {row.name: row.restarts for row in self.cluster.status()}


@contextmanager
def system(workers: int, *, keep: Path | None = None, **environment: str) -> Iterator[System]:
    """A cluster for the length of the block, in a folder of its own; nothing of it stays, but logs in ``keep``."""
    folder = Path(tempfile.mkdtemp(prefix="kernelevolve-chaos-"))
    cluster = Cluster(folder)
    layout = Layout(chips=(CHIP,), workers=workers, searches=SEARCHES, environment={**ENVIRONMENT, **environment})
    try:
        yield System(cluster, cluster.up(layout))
    finally:
        cluster.down()
        if keep is not None:
            shutil.copytree(folder / "logs", keep, dirs_exist_ok=True)
        shutil.rmtree(folder)
