"""Changing one element of an input while a block of calls runs, from a thread of its own.

The block is one command to the runner, so nothing of the candidate can know of the change but by reading its input
again. The element is aligned and at most eight bytes: no call sees half of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

NS_PER_S = 1e9


class Armed:
    """A change on its way. ``disarm`` before anything else is done to the input."""

    def __init__(self, pool: ThreadPoolExecutor, delay_ns: float, target: memoryview, data: bytes) -> None:
        self._stop = threading.Event()
        self._done: Future[int | None] = pool.submit(self._run, delay_ns, target, data)

    def disarm(self) -> int | None:
        """When it was made (``time.monotonic_ns``), or None: it was not, and will not be."""
        self._stop.set()
        return self._done.result()

    def _run(self, delay_ns: float, target: memoryview, data: bytes) -> int | None:
        if self._stop.wait(delay_ns / NS_PER_S):
            return None
        target[:] = data
        return time.monotonic_ns()


class Flipper:
    """The thread. It keeps off ``cpus``, those of the candidate, where there are others."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self._pool = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="flip", initializer=_keep_off, initargs=(cpus,)
        )

    def arm(self, delay_ns: float, target: memoryview, data: bytes) -> Armed:
        """Write ``data`` over ``target`` in ``delay_ns``."""
        return Armed(self._pool, delay_ns, target, data)

    def close(self) -> None:
        self._pool.shutdown(wait=True)


def _keep_off(cpus: Sequence[int]) -> None:
    others = os.sched_getaffinity(0) - set(cpus)
    if others:
        os.sched_setaffinity(0, others)  # of this thread alone
