"""Waiting for a dependency that is gone: for as long as it takes, with capped and jittered pauses."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from shared.errors import Unavailable

T = TypeVar("T")

PAUSE_S = 0.1
"""Longest pause before the second try; doubles for each further one."""
PAUSE_MAX_S = 5.0

log = logging.getLogger(__name__)


async def patiently(call: Callable[[], Awaitable[T]], what: str) -> T:
    """What ``call`` returns, called again while it raises ``Unavailable``; cancel it to give up.

    ``what`` names the attempt in the log, e.g. "publish to search.facts.v1".
    """
    try:
        return await call()  # as nearly always: what follows costs more than many a call
    except Unavailable as error:
        failures = [error]

    def note(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning("%s: try %d: %s", what, state.attempt_number, error)

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(Unavailable),
        wait=wait_random_exponential(multiplier=PAUSE_S, max=PAUSE_MAX_S),
        before_sleep=note,
        reraise=True,
    )

    async def once() -> T:
        if failures:
            raise failures.pop()
        return await call()

    return await retrying(once)
