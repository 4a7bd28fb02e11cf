"""A search replica, a lab that answers it, and a client that calls its servicer: what the tests beside this share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from protos.events.v1 import search_pb2
from protos.search.v1 import search_service_pb2 as pb
from search_svc import replica
from search_svc.grpc_api import SearchServicer
from search_svc.settings import Settings
from shared.bus.memory import MemoryBus
from shared.cache.memory import MemoryCacheBackend
from shared.clock import SystemClock
from shared.consume import ConsumeLimits
from shared.ports import Ports
from shared.runtime import running
from shared.store.memory import MemoryStore
from tests.fakes.lab import Lab

QUICK = Settings(sweep_s=0.02, ask_again_after_s=0.05, ask_again_max_s=0.2, watch_poll_s=0.005)
LIMITS = ConsumeLimits(poll_wait_s=0.01)
OPERATOR = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


@dataclass
class Cluster:
    """One replica and its lab over ports that may be swapped between two lives."""

    ports: Ports
    lab: Lab
    parts: replica.Replica

    @property
    def api(self) -> SearchServicer:
        return self.parts.api

    async def submit(self, request_id: str = "r1", **changes) -> str:
        return (await self.api.Submit(a_request(client_request_id=request_id, **changes), None)).search_id

    async def until_finished(self, search_id: str) -> list[pb.WatchResponse]:
        return [seen async for seen in self.api.Watch(pb.WatchRequest(search_id=search_id), None)]

    async def get(self, search_id: str) -> pb.Search:
        return (await self.api.Get(pb.GetRequest(search_id=search_id), None)).search


def a_request(evaluations: int = 8, **changes) -> pb.SubmitRequest:
    fields = {
        "operator": pb.OperatorSource(name="increment", source=OPERATOR),
        "chip": "cpu-x86_64",
        "budget": search_pb2.Budget(evaluations=evaluations),
    }
    return pb.SubmitRequest(**(fields | changes))


async def fresh_ports() -> Ports:
    clock = SystemClock()
    return Ports(bus=MemoryBus(), store=MemoryStore(), cache=MemoryCacheBackend(clock), clock=clock)


def with_empty_bus(ports: Ports) -> Ports:
    """The same store and cache, and a broker that came back with nothing."""
    return replace(ports, bus=MemoryBus())


@asynccontextmanager
async def alive(ports: Ports, settings: Settings = QUICK, *, deaf_after: int | None = None) -> AsyncIterator[Cluster]:
    """One life of all processes over ``ports``."""
    lab = Lab(ports)
    lab.deaf_after = deaf_after
    parts = replica.assemble(ports, settings)
    service = replica.build(ports, settings, parts)
    async with ports.bus, running([service, lab.service()], ports, LIMITS):
        yield Cluster(ports, lab, parts)
