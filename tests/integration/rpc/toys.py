"""A servicer whose answers a test chooses, behind a real server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from protos.search.v1 import search_service_pb2 as pb
from protos.search.v1 import search_service_pb2_grpc
from shared.health import Health, Phase
from shared.rpc.client import connect
from shared.rpc.server import serving
from shared.rpc.settings import ClientSettings, ServerSettings
from shared.service import Service, Servicer

ANY_PORT = "127.0.0.1:0"
NAME = pb.DESCRIPTOR.services_by_name["SearchService"].full_name


@dataclass
class Toy(search_service_pb2_grpc.SearchServiceServicer):
    """``Get`` raises or answers what ``get`` does; ``Watch`` and ``ExportLog`` stream until they are let go."""

    get: Callable[[str], pb.Search] = lambda search_id: pb.Search(search_id=search_id)
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    freed: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0

    async def Get(self, request, context):  # noqa: N802
        self.calls += 1
        self.entered.set()
        if request.search_id == "held":
            await self.hold.wait()
        return pb.GetResponse(search=self.get(request.search_id))

    async def Cancel(self, request, context):  # noqa: N802
        return pb.CancelResponse()

    async def Watch(self, request, context):  # noqa: N802
        try:
            yield pb.WatchResponse(seq=request.from_seq)
            self.entered.set()
            await self.hold.wait()
        finally:
            self.freed.set()

    async def ExportLog(self, request, context):  # noqa: N802
        yield pb.ExportLogResponse(chunk=b"first")
        self.entered.set()
        await self.hold.wait()
        yield pb.ExportLogResponse(chunk=b"last", entries=1)

    def service(self) -> Service:
        def add(server):
            search_service_pb2_grpc.add_SearchServiceServicer_to_server(self, server)

        return Service(name="search", servicers=(Servicer(name=NAME, add=add),))


def ready() -> Health:
    return Health("search", phase=Phase.READY)


@asynccontextmanager
async def toy_server(
    toy: Toy, *, listen: str = ANY_PORT, health: Health | None = None, **settings
) -> AsyncIterator[str]:
    """The address of a server of ``toy``; ``settings`` are ServerSettings'."""
    states: Sequence[Health] = [health or ready()]
    async with serving([toy.service()], ServerSettings(listen=listen, **settings), states) as server:
        yield server.address


@asynccontextmanager
async def stub_of(address: str, **settings) -> AsyncIterator[search_service_pb2_grpc.SearchServiceStub]:
    """A stub over the project's own channel; ``settings`` are ClientSettings'."""
    async with connect(ClientSettings(server=address, **settings)) as channel:
        yield search_service_pb2_grpc.SearchServiceStub(channel)


def a_get(search_id: str = "s") -> pb.GetRequest:
    return pb.GetRequest(search_id=search_id)
