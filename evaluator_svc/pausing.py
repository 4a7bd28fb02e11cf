"""A pause that a stop cuts short."""

from __future__ import annotations

import asyncio
import random


async def pause(stop: asyncio.Event, most_s: float) -> None:
    """Up to ``most_s``, by chance, so that workers do not come back in step; less when ``stop`` is set."""
    try:
        async with asyncio.timeout(random.uniform(0.0, most_s)):  # noqa: S311 - spreads retries, decides nothing
            await stop.wait()
    except TimeoutError:
        return
