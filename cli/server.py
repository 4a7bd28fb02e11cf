"""Which server a command talks to, and talking to it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shared.errors import UserError
from shared.rpc.settings import ClientSettings
from shared.settings import from_env

if TYPE_CHECKING:
    from cli.client import KernelEvolveClient

T = TypeVar("T")

PREFIX = "KERNELEVOLVE_"
LOCAL_CLUSTER = Path(".cluster/cluster.json")


def of_a_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``command`` the option that says which server."""
    option = click.option(
        "--server", metavar="HOST:PORT", help="Default: KERNELEVOLVE_SERVER, then the local cluster of `make up`."
    )
    return option(command)


def settings_of(server: str | None) -> ClientSettings:
    """Where and as whom: ``server``, else the environment's, else the local cluster's.

    Raises:
        UserError: none of them, or a setting that does not parse.
    """
    settings = from_env(ClientSettings, os.environ, PREFIX)
    address = server or settings.server or _local()
    if not address:
        raise UserError("no server to talk to", hint="start a local cluster with `make up`, or give --server HOST:PORT")
    return replace(settings, server=address)


def _local() -> str:
    """Where the local cluster of this directory serves; empty when none has been started."""
    try:
        return str(json.loads(LOCAL_CLUSTER.read_text(encoding="utf-8"))["server"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"is not what `make up` wrote: {error}", where=str(LOCAL_CLUSTER)) from error


def talk(server: str | None, work: Callable[[KernelEvolveClient], Awaitable[T]]) -> T:
    """What ``work`` returns, given a client of ``server``.

    Raises:
        UserError: no server is known, or this installation lacks gRPC.
    """
    try:
        from cli.client import open_client
    except ImportError as error:
        raise UserError(f"talking to a server needs gRPC: {error}", hint="pip install 'kernelevolve[grpc]'") from error

    async def go() -> T:
        async with open_client(settings_of(server)) as client:
            return await work(client)

    return asyncio.run(go())
