"""Doing something every so often until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def every(pause_s: float, action: Callable[[], Awaitable[object]], stop: asyncio.Event) -> None:
    """``action``, then a pause of ``pause_s`` seconds that ends early when ``stop`` is set, and again until it is.

    The pause comes after the action, so a slow one is never run twice at a time. Raises what ``action`` raises.
    """
    while not stop.is_set():
        await action()
        try:
            async with asyncio.timeout(pause_s):
                await stop.wait()
        except TimeoutError:
            continue
