"""Asking again where that can help, within one deadline."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from synthesizer_svc.model.faults import Fault

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """``MODEL_RETRY_*``.

    Raises:
        ValueError: a limit below 1, or a pause that is not positive.
    """

    attempts_max: int = 5
    """Of one question, the first included."""
    billed_attempts_max: int = 2
    """Of these, attempts that may have generated an answer: broken streams, empty answers. What one question can cost
    is this many answers."""
    pause_s: float = 1.0
    """Longest pause before the second attempt; doubles for each further one. Pauses are drawn between 0 and this."""
    pause_max_s: float = 30.0
    """The longest of these pauses. An endpoint that names a pause is given that one."""

    def __post_init__(self) -> None:
        if min(self.attempts_max, self.billed_attempts_max) < 1 or min(self.pause_s, self.pause_max_s) <= 0:
            raise ValueError("limits must be positive")


class Retrying:
    """Repeats attempts. A pause that the deadline does not leave room for is not begun."""

    def __init__(
        self, settings: RetrySettings, *, sleep: Sleep = asyncio.sleep, chance: random.Random | None = None
    ) -> None:
        self._settings, self._sleep = settings, sleep
        self._chance = chance or random.Random()  # noqa: S311 - spreads pauses

    async def call(self, attempt: Callable[[], Awaitable[T]], remaining_s: Callable[[], float], what: str) -> T:
        """What ``attempt`` returns, made again while it raises a ``Fault`` that says so.

        Raises:
            Fault: the last attempt's.
        """
        billed = 0

        def no_more(state: RetryCallState) -> bool:
            nonlocal billed
            billed += _fault(state).usage.output_tokens > 0
            return (
                state.attempt_number >= self._settings.attempts_max
                or billed >= self._settings.billed_attempts_max
                or state.upcoming_sleep >= remaining_s()
            )

        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, Fault) and error.again),
            wait=self._pause_s,
            stop=no_more,
            sleep=self._sleep,
            before_sleep=lambda state: log.warning("%s: attempt %d: %s", what, state.attempt_number, _fault(state)),
            reraise=True,
        )
        return await retrying(attempt)

    def _pause_s(self, state: RetryCallState) -> float:
        """Full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/), or what was asked
        for and up to a tenth more, so that those who were told the same do not come back together.
        """
        asked = _fault(state).retry_after_s
        if asked:
            return asked * (1 + self._chance.random() / 10)
        longest = min(self._settings.pause_max_s, self._settings.pause_s * 2 ** (state.attempt_number - 1))
        return self._chance.uniform(0, longest)


def _fault(state: RetryCallState) -> Fault:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Fault)
    return error
