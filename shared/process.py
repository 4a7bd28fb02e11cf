"""A service as a process: signals, gRPC, logs, metrics and traces around ``shared.runtime``.

``main`` is what a service's ``__main__`` calls.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from shared import crashes, exit_codes, inspection, logs, telemetry
from shared.consume import ConsumeLimits
from shared.dependencies import WatchSettings
from shared.errors import UserError
from shared.ports import Ports, open_ports
from shared.rpc.settings import ServerSettings
from shared.runtime import Running, running
from shared.service import Service
from shared.settings import PortSettings, from_env

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run(
    services: Sequence[Service],
    ports: Ports,
    stop: asyncio.Event | None = None,
    limits: ConsumeLimits | None = None,
    watch: WatchSettings | None = None,
    rpc: ServerSettings | None = None,
) -> None:
    """Run until ``stop``, SIGTERM or SIGINT, then drain: gRPC calls first, which consumers may still answer. A second
    signal ends the process at once.

    Raises:
        UserError: gRPC cannot be served as ``rpc`` says.
        Exception: the first failure of a service.
    """
    stop = stop or asyncio.Event()
    with _signals(stop):
        told = asyncio.create_task(stop.wait())
        try:
            async with AsyncExitStack() as stack:
                async with _unless(told):
                    handle = await stack.enter_async_context(running(services, ports, limits, watch))
                    await stack.enter_async_context(_serving(services, rpc, handle))
                if not told.done():
                    either: set[asyncio.Future[Any]] = {told, handle.failed}
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()


@asynccontextmanager
async def _unless(told: asyncio.Task[Any]) -> AsyncIterator[None]:
    """Leave the block as soon as ``told`` is done: what it waits for may not come for hours."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as limit:

            def leave(_: object) -> None:
                limit.reschedule(loop.time())

            told.add_done_callback(leave)
            try:
                yield
            finally:
                told.remove_done_callback(leave)
    except TimeoutError:
        if not limit.expired():
            raise
        log.info("told to stop before everything that is needed was there")


@asynccontextmanager
async def _serving(
    services: Sequence[Service], settings: ServerSettings | None, handle: Running
) -> AsyncIterator[None]:
    """The gRPC server, if one is wanted."""
    if settings is None or not settings.listen:
        yield
        return
    try:
        from shared.rpc.server import serving
    except ImportError as error:
        hint = "pip install 'kernelevolve[grpc]'"
        raise UserError(f"needs the extra `grpc`: {error}", where="GRPC_LISTEN", hint=hint) from error
    async with serving(services, settings, handle.health):
        yield


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def drain() -> None:
        log.info("draining; a second signal ends the process")
        stop.set()
        restore()

    def restore() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    for number in SIGNALS:
        loop.add_signal_handler(number, drain)
    try:
        yield
    finally:
        restore()


def main(build: Callable[[Ports], Sequence[Service]], settings: PortSettings | None = None) -> int:
    """Open the ports, build the services, run them, with logs, metrics and traces as the environment says, and closed
    to other processes (``shared.inspection``).

    Returns the exit code; a ``UserError`` is one line on stderr.
    """

    async def go() -> None:
        watch = from_env(WatchSettings, os.environ, "DEPENDENCY_")
        told = from_env(telemetry.TelemetrySettings, os.environ)
        rpc = from_env(ServerSettings, os.environ, "GRPC_")
        async with open_ports(settings or from_env(PortSettings, os.environ)) as ports:
            services = build(ports)
            with telemetry.told(told, [service.name for service in services]):
                await run(services, ports, watch=watch, rpc=rpc)

    crashes.without_secrets()
    try:
        inspection.keep_out(os.environ)
        with logs.written(from_env(logs.LogSettings, os.environ)):
            asyncio.run(go())
    except UserError as error:
        print(error, file=sys.stderr)
        return exit_codes.BAD_INPUT
    return 0
