"""Calling a server: a channel that authenticates, keeps deadlines, repeats calls that may be, and notices silence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from shared.errors import UserError
from shared.rpc import credentials
from shared.rpc.methods import METHODS, of
from shared.rpc.settings import ClientSettings

MS_PER_S = 1000
PAUSE_FACTOR = 2
LONGEST_PAUSE = 8
"""In pauses before the second try."""
RECONNECT_S = 0.2
RECONNECT_MAX_S = 2.0
"""gRPC's own 1 s to 2 min suits a client of a thousand, not one that waits for a restart."""


@asynccontextmanager
async def connect(settings: ClientSettings) -> AsyncIterator[Any]:
    """A ``grpc.aio.Channel`` to ``settings.server`` for the length of the block; give it to a generated stub.

    Calls through it raise gRPC's errors: make them in ``shared.rpc.errors.as_ours``. The first call connects.

    Raises:
        UserError: the settings make no sense.
    """
    host, separator, port = settings.server.rpartition(":")
    if not (host and separator and port.isdecimal()):
        raise UserError(f"server is `{settings.server}`, expected host:port", where="KERNELEVOLVE_SERVER")
    secured = credentials.of_client(settings)
    details = _Details(settings.token)
    interceptors: Any = [_Unary(details), _Stream(details)]
    told = options(settings)
    channel = (
        grpc.aio.secure_channel(settings.server, secured, options=told, interceptors=interceptors)
        if secured
        else grpc.aio.insecure_channel(settings.server, options=told, interceptors=interceptors)
    )
    async with channel:
        yield channel


def options(settings: ClientSettings) -> list[tuple[str, Any]]:
    """What gRPC calls the settings."""
    return [
        ("grpc.max_receive_message_length", settings.message_bytes_max),
        ("grpc.max_send_message_length", settings.message_bytes_max),
        ("grpc.keepalive_time_ms", round(settings.keepalive_s * MS_PER_S)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_s * MS_PER_S)),
        ("grpc.http2.max_pings_without_data", 0),  # a watch of a slow search is silent for minutes
        ("grpc.initial_reconnect_backoff_ms", round(RECONNECT_S * MS_PER_S)),
        ("grpc.max_reconnect_backoff_ms", round(RECONNECT_MAX_S * MS_PER_S)),
        ("grpc.service_config", json.dumps(service_config(settings))),
    ]


def service_config(settings: ClientSettings) -> dict[str, Any]:
    """Repeat every repeatable method on UNAVAILABLE; spread calls over all addresses of the server's name."""
    config: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    if settings.tries_max > 1:
        config["methodConfig"] = [{"name": _repeatable(), "retryPolicy": _retries(settings)}]
    return config


def _repeatable() -> list[dict[str, str]]:
    return [
        {"service": service, "method": name}
        for service, methods in METHODS.items()
        for name, method in methods.items()
        if method.repeatable
    ]


def _retries(settings: ClientSettings) -> dict[str, Any]:
    return {
        "maxAttempts": settings.tries_max,
        "initialBackoff": f"{settings.retry_pause_s}s",
        "backoffMultiplier": PAUSE_FACTOR,
        "maxBackoff": f"{LONGEST_PAUSE * settings.retry_pause_s}s",
        "retryableStatusCodes": ["UNAVAILABLE"],
    }


class _Details:
    """What every call carries: the token, and its method's deadline unless the caller set one."""

    def __init__(self, token: str) -> None:
        self._token = token

    def complete(self, details: Any) -> grpc.aio.ClientCallDetails:
        method = of(details.method.decode())
        metadata = grpc.aio.Metadata(*(details.metadata or ()))
        if self._token:
            metadata.add("authorization", f"Bearer {self._token}")
        default_s = method.deadline_s if method and method.deadline_s else None
        return grpc.aio.ClientCallDetails(
            method=details.method,
            timeout=details.timeout if details.timeout is not None else default_s,
            metadata=metadata,
            credentials=details.credentials,
            wait_for_ready=details.wait_for_ready,
        )


class _Unary(grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]
    def __init__(self, details: _Details) -> None:
        self._details = details

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await continuation(self._details.complete(client_call_details), request)


class _Stream(grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    def __init__(self, details: _Details) -> None:
        self._details = details

    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return await continuation(self._details.complete(client_call_details), request)
