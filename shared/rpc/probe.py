"""Asking servers for their standard health from outside."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from shared.rpc import credentials
from shared.rpc.health import OVERALL, SERVING
from shared.rpc.settings import ClientSettings


def serving(addresses: Iterable[str], settings: ClientSettings, within_s: float) -> set[str]:
    """Those of ``addresses`` (``host:port``) whose server as a whole is SERVING; all are asked at once.

    Raises:
        UserError: ``settings`` that nobody can call with.
    """
    with ExitStack() as stack:
        asked = {}
        for address in addresses:
            channel = stack.enter_context(_channel(replace(settings, server=address)))
            check = health_pb2_grpc.HealthStub(channel).Check
            asked[address] = check.future(health_pb2.HealthCheckRequest(service=OVERALL), timeout=within_s)
        return {address for address, answer in asked.items() if _is_serving(answer)}


def _channel(settings: ClientSettings) -> grpc.Channel:
    secure = credentials.of_client(settings)
    if secure is None:
        return grpc.insecure_channel(settings.server)
    return grpc.secure_channel(settings.server, secure)


def _is_serving(answer: grpc.Future[Any]) -> bool:
    try:
        return bool(answer.result().status == SERVING)
    except grpc.RpcError:
        return False
