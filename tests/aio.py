"""Coroutine tests without a plug-in: each runs on an event loop of its own."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The coroutine function ``test`` as a plain test."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until ``condition`` holds. The test's own timeout ends a wait in vain."""
    while not condition():
        await asyncio.sleep(0)
