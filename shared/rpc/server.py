"""Serving gRPC: all servicers of a process on one port, with health, reflection, limits, tokens and a drain."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health as grpc_health
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from shared.errors import UserError
from shared.health import Health
from shared.rpc import auth, credentials, errors, health, telemetry, tokens
from shared.rpc.handlers import Interceptor
from shared.rpc.limits import Limits
from shared.rpc.settings import ServerSettings, is_loopback
from shared.service import Service

log = logging.getLogger(__name__)

MS_PER_S = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that listens. ``address`` is ``host:port`` with the port that was taken."""

    address: str


@asynccontextmanager
async def serving(
    services: Sequence[Service], settings: ServerSettings, states: Sequence[Health]
) -> AsyncIterator[Serving]:
    """Serve the servicers of ``services`` for the length of the block; ``states`` is the health of each, in order.

    Leaving the block drains: health says NOT_SERVING, no new calls, streams that can be resumed are cut, the others
    have ``drain_s`` to end.

    Raises:
        UserError: the settings cannot be served with, or the address is taken.
    """
    _check_address(settings.listen)
    secured = credentials.of_server(settings)
    limits = Limits(settings.deadline_max_s)
    interceptors = [telemetry.interceptor(), *_interceptors(settings, limits)]
    server = grpc.aio.server(
        interceptors=interceptors, options=options(settings), maximum_concurrent_rpcs=settings.calls_max
    )
    by_name = {
        servicer.name: state for service, state in zip(services, states, strict=True) for servicer in service.servicers
    }
    for service in services:
        for servicer in service.servicers:
            servicer.add(server)
    checker = health.open_servicer()
    await health.tell(checker, by_name, states)
    health_pb2_grpc.add_HealthServicer_to_server(checker, server)
    reflection.enable_server_reflection((*by_name, grpc_health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    address = _bind(server, settings.listen, secured)
    await server.start()
    log.info("gRPC listens on %s (%s)", address, "TLS" if secured else "plaintext")
    following = asyncio.create_task(health.follow(checker, by_name, states))
    try:
        yield Serving(address=address)
    finally:
        following.cancel()
        await checker.enter_graceful_shutdown()
        await _drain(server, limits, settings.drain_s)


async def _drain(server: grpc.aio.Server, limits: Limits, drain_s: float) -> None:
    stopping = asyncio.create_task(server.stop(drain_s))
    await asyncio.sleep(0)  # it no longer listens when the streams that it cuts come back
    limits.leave()
    await stopping


def _interceptors(settings: ServerSettings, limits: Limits) -> list[Interceptor]:
    """Outermost first: what the inner ones raise becomes a status too."""
    statuses = Interceptor(lambda path: None if path.startswith("/grpc.") else errors.as_statuses)
    if settings.tokens:
        return [statuses, auth.interceptor(tokens.load(Path(settings.tokens))), limits.interceptor()]
    if not (settings.allow_anonymous or settings.tls_client_ca or is_loopback(settings.listen)):
        raise UserError(
            f"{settings.listen} is beyond loopback and anybody could submit and cancel",
            where="GRPC_LISTEN",
            hint="set GRPC_TOKENS to a token file, or GRPC_TLS_CLIENT_CA; GRPC_ALLOW_ANONYMOUS=true to let anybody",
        )
    return [statuses, limits.interceptor()]


def options(settings: ServerSettings) -> list[tuple[str, Any]]:
    """What gRPC calls the settings; see ``ServerSettings`` for why."""
    return [
        ("grpc.max_receive_message_length", settings.message_bytes_max),
        ("grpc.max_send_message_length", settings.message_bytes_max),
        ("grpc.keepalive_time_ms", round(settings.keepalive_s * MS_PER_S)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_s * MS_PER_S)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(settings.client_ping_min_s * MS_PER_S)),
        ("grpc.max_connection_age_ms", round(settings.connection_age_s * MS_PER_S)),
        ("grpc.max_connection_age_grace_ms", round(settings.connection_age_grace_s * MS_PER_S)),
        ("grpc.so_reuseport", 0),  # a port that another process has is an error, not half of the calls
    ]


def _check_address(listen: str) -> None:
    host, separator, port = listen.rpartition(":")
    if not (host and separator and port.isdecimal()):
        raise UserError(f"is {listen!r}, expected host:port", where="GRPC_LISTEN")


def _bind(server: grpc.aio.Server, listen: str, secured: grpc.ServerCredentials | None) -> str:
    """Where it listens then, with the port that was taken."""
    try:
        bound = server.add_secure_port(listen, secured) if secured else server.add_insecure_port(listen)
    except RuntimeError as error:
        raise UserError(
            f"cannot listen on {listen}: {error}", where="GRPC_LISTEN", hint="is the port taken?"
        ) from error
    return f"{listen.rpartition(':')[0]}:{bound}"
