"""Services behind a real gRPC server on loopback, and a channel to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc

from shared.ports import Ports
from shared.rpc.client import connect
from shared.rpc.server import serving
from shared.rpc.settings import ClientSettings, ServerSettings
from shared.runtime import running
from shared.service import Service

ANY_PORT = "127.0.0.1:0"


@asynccontextmanager
async def served(services: Sequence[Service], ports: Ports, listen: str = ANY_PORT) -> AsyncIterator[str]:
    """The address that ``services`` are served on while they run."""
    settings = ServerSettings(listen=listen, drain_s=0.0)
    async with running(services, ports) as handle, serving(services, settings, handle.health) as server:
        yield server.address


@asynccontextmanager
async def called(services: Sequence[Service], ports: Ports) -> AsyncIterator[Any]:
    """A channel to ``services`` while they run."""
    async with served(services, ports) as address, connect(ClientSettings(server=address)) as channel:
        yield channel


async def refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    """Code and message that ``call`` fails with."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError("the call was answered")
