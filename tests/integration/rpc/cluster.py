"""The search service with its own servicers behind a real gRPC server, and a lab whose kernels have sources."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from search_svc import replica
from shared.events import CandidateProduced, Envelope, EvaluationRequested, ExpansionRequested, KernelRef
from shared.ports import Ports
from shared.rpc.server import serving
from shared.rpc.settings import ServerSettings
from shared.runtime import running
from tests.fakes.lab import Lab
from tests.integration.rpc.toys import ANY_PORT
from tests.integration.search_svc.replica import LIMITS, QUICK, fresh_ports


class WritingLab(Lab):
    """The landscape's kernels, whose source is their point's text, are written to the store like any other source."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self._blobs = ports.store.blobs
        self._points: dict[str, str] = {}

    async def _synthesize(self, envelope: Envelope) -> None:
        request = envelope.event
        assert isinstance(request, ExpansionRequested)
        parents = tuple(self._as_point(kernel) for kernel in request.parents)
        await super()._synthesize(replace(envelope, event=replace(request, parents=parents)))

    async def _evaluate(self, envelope: Envelope) -> None:
        request = envelope.event
        assert isinstance(request, EvaluationRequested)
        await super()._evaluate(replace(envelope, event=replace(request, kernel=self._as_point(request.kernel))))

    async def _reply(self, answer) -> None:
        if isinstance(answer, CandidateProduced):
            point = answer.kernel.source_hash
            digest = await self._blobs.put(f"// point {point}\n".encode())
            self._points[digest] = point
            answer = replace(answer, kernel=replace(answer.kernel, source_hash=digest))
        await super()._reply(answer)

    def _as_point(self, kernel: KernelRef) -> KernelRef:
        return replace(kernel, source_hash=self._points[kernel.source_hash])


@dataclass(frozen=True)
class Served:
    """Where the cluster is served, and who works in it."""

    address: str
    lab: WritingLab
    ports: Ports


@asynccontextmanager
async def served_cluster() -> AsyncIterator[Served]:
    """One life of a cluster in memory."""
    ports = await fresh_ports()
    service, lab = replica.build(ports, QUICK), WritingLab(ports)
    async with (
        ports.bus,
        running([service, lab.service()], ports, LIMITS) as handle,
        serving([service], ServerSettings(listen=ANY_PORT, drain_s=0.0), handle.health[:1]) as server,
    ):
        yield Served(server.address, lab, ports)
