"""Asking servers for their standard health from outside.

``python -m shared.rpc.probe [--service liveness]`` asks the server of this machine that ``GRPC_LISTEN`` describes, with
the certificates of ``KERNELEVOLVE_*``, for container engines: exit status 0 when it is SERVING. Under TLS the server's
certificate must be for ``localhost`` too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from shared import exit_codes
from shared.errors import UserError
from shared.rpc import credentials
from shared.rpc.health import OVERALL, SERVING
from shared.rpc.settings import ClientSettings, ServerSettings
from shared.settings import from_env

WITHIN_S = 4.0


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 SERVING, 1 not, 2 settings that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m shared.rpc.probe")
    parser.add_argument("--service", default=OVERALL, help="name to ask for; default: the server as a whole")
    service = parser.parse_args(arguments).service
    try:
        address = _own_address()
        settings = from_env(ClientSettings, os.environ, "KERNELEVOLVE_")
        found = serving((address,), settings, WITHIN_S, service=service)
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.BAD_INPUT
    return exit_codes.DONE if found else exit_codes.FAILED


def serving(addresses: Iterable[str], settings: ClientSettings, within_s: float, *, service: str = OVERALL) -> set[str]:
    """Those of ``addresses`` (``host:port``) whose ``service``, by default the server as a whole, is SERVING.

    All are asked at once.

    Raises:
        UserError: ``settings`` that nobody can call with.
    """
    with ExitStack() as stack:
        asked = {}
        for address in addresses:
            channel = stack.enter_context(_channel(replace(settings, server=address)))
            check = health_pb2_grpc.HealthStub(channel).Check
            asked[address] = check.future(health_pb2.HealthCheckRequest(service=service), timeout=within_s)
        return {address for address, answer in asked.items() if _is_serving(answer)}


def _own_address() -> str:
    listen = from_env(ServerSettings, os.environ, "GRPC_").listen
    if not listen:
        raise UserError("is not set", where="GRPC_LISTEN", hint="a process that serves nothing has no health to ask")
    return f"localhost:{listen.rpartition(':')[2]}"


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
