"""Attempts are repeated while that can help and the deadline leaves room."""

from __future__ import annotations

import random

import pytest

from shared.events import Usage
from synthesizer_svc.model import ModelErrorCode
from synthesizer_svc.model.faults import Fault
from synthesizer_svc.model.retrying import Retrying, RetrySettings
from tests.aio import on_loop

SETTINGS = RetrySettings(attempts_max=5, billed_attempts_max=2, pause_s=1.0, pause_max_s=4.0)
BILLED = Usage(requests=1, output_tokens=9)


class Attempts:
    """Plays faults, then answers; time is what the pauses add up to."""

    def __init__(self, *faults: Fault, deadline_s: float = 1000.0) -> None:
        self._faults, self.deadline_s = list(faults), deadline_s
        self.made, self.pauses = 0, []

    async def __call__(self) -> str:
        self.made += 1
        if self._faults:
            raise self._faults.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def remaining_s(self) -> float:
        return self.deadline_s - sum(self.pauses)

    async def run(self, settings: RetrySettings = SETTINGS, chance: random.Random | None = None) -> str:
        retrying = Retrying(settings, sleep=self.sleep, chance=chance or random.Random(1))
        return await retrying.call(self, self.remaining_s, "test")


def again(**more) -> Fault:
    return Fault(ModelErrorCode.ENDPOINT, "busy", again=True, **more)


@on_loop
async def test_an_attempt_is_repeated_until_it_succeeds():
    attempts = Attempts(again(), again(), again())
    assert await attempts.run() == "answer"
    assert attempts.made == 4


@on_loop
async def test_all_attempts_may_fail():
    attempts = Attempts(*(again() for _ in range(9)))
    with pytest.raises(Fault):
        await attempts.run()
    assert (attempts.made, len(attempts.pauses)) == (5, 4)


@on_loop
async def test_a_fault_that_stays_is_not_tried_again():
    attempts = Attempts(Fault(ModelErrorCode.SPEND_LIMIT, "paid out"))
    with pytest.raises(Fault):
        await attempts.run()
    assert attempts.made == 1


@on_loop
async def test_an_error_of_our_own_is_not_tried_again():
    class Broken(Attempts):
        async def __call__(self) -> str:
            self.made += 1
            raise ZeroDivisionError

    attempts = Broken()
    with pytest.raises(ZeroDivisionError):
        await attempts.run()
    assert attempts.made == 1


@on_loop
async def test_attempts_that_may_be_billed_are_fewer():
    attempts = Attempts(again(usage=BILLED), again(), again(usage=BILLED), again())
    with pytest.raises(Fault):
        await attempts.run()
    assert attempts.made == 3


@on_loop
async def test_pauses_grow_to_their_longest_and_are_drawn():
    class Longest(random.Random):
        def uniform(self, a: float, b: float) -> float:
            assert a == 0
            return b

    attempts = Attempts(*(again() for _ in range(4)))
    await attempts.run(chance=Longest())
    assert attempts.pauses == [1.0, 2.0, 4.0, 4.0]


@on_loop
async def test_a_pause_that_is_asked_for_is_kept_and_never_shortened():
    attempts = Attempts(again(retry_after_s=20.0))
    await attempts.run()
    assert 20.0 <= attempts.pauses[0] <= 22.0


@pytest.mark.parametrize("asked_s", [10.0, 3600.0])
@on_loop
async def test_a_pause_beyond_the_deadline_is_not_begun(asked_s):
    attempts = Attempts(again(retry_after_s=asked_s), deadline_s=10.0)
    with pytest.raises(Fault):
        await attempts.run()
    assert (attempts.made, attempts.pauses) == (1, [])


def test_limits_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        RetrySettings(attempts_max=0)
