"""A virtual-time event loop: no sockets, no waiting, ready callbacks in an order drawn from a seed.

Time stands still while anything can run and then jumps to the next timer. With nothing ready and no timer, the
program can never go on: that is reported as ``Deadlock`` at once. The loop relies on two private parts of
``asyncio.BaseEventLoop`` (``_ready``, ``_run_once``), which ``test_loop.py`` watches.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(RuntimeError):
    """Nothing is ready and no timer is set."""


class _NoSelector:
    """What the loop asks for file events: there are none, and waiting for them is how time passes."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock(f"at {self._loop.time():.1f} s nothing is ready and no timer is set")
        self._loop.now_s += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module. ``now_s`` is virtual seconds since the start."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.now_s = 0.0
        self._rng = random.Random(seed)
        self._selector = _NoSelector(self)

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        ready = list(self._ready)
        self._rng.shuffle(ready)
        self._ready = deque(ready)
        super()._run_once()

    def _process_events(self, event_list: Any) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nobody waits in a selector, so nobody has to be woken."""


def run(seed: int, main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` on a fresh virtual loop, then end whatever it left running."""
    loop = VirtualLoop(seed)
    try:
        return loop.run_until_complete(main)
    finally:
        if rest := asyncio.all_tasks(loop):
            for task in rest:
                task.cancel()
            loop.run_until_complete(asyncio.wait(rest))
        loop.close()
