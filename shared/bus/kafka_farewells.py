"""Closing in the background what talks to a broker, which may take its time or be gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from shared.bus.kafka_driver import attempt
from shared.errors import KernelEvolveError

log = logging.getLogger(__name__)

CLOSE_S = 10.0
"""How long closing waits for the driver to say goodbye to a broker."""


class Farewells:
    """Those in progress."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def part(self, farewell: Awaitable[None]) -> asyncio.Task[None]:
        """Close something in ``CLOSE_S`` at most. The task raises nothing: there is nobody left to tell."""
        task = asyncio.create_task(_say(farewell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self) -> None:
        """Until all are through, those included that begin meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)


async def _say(farewell: Awaitable[None]) -> None:
    try:
        async with attempt("close", CLOSE_S * 1000):
            await farewell
    except KernelEvolveError as error:
        log.info("closed without the broker's answer: %s", error)
    except Exception:
        log.exception("closing failed")
