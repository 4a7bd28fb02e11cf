"""An endpoint that keeps failing is left alone for a while, by every replica."""

from __future__ import annotations

import asyncio

import pytest

from shared.cache.memory import MemoryCacheBackend
from shared.clock import SECOND_NS, ManualClock
from shared.errors import Unavailable
from synthesizer_svc.model import ModelErrorCode
from synthesizer_svc.model.breaker import Breaker, BreakerSettings
from synthesizer_svc.model.faults import Fault
from tests.aio import on_loop

SETTINGS = BreakerSettings(failures_max=3, open_s=10.0, open_max_s=35.0)
ILL = {"code": ModelErrorCode.ENDPOINT, "detail": "503", "ailing": True}
UNPAID = {"code": ModelErrorCode.SPEND_LIMIT, "detail": "pay", "hopeless": True}
BAD_QUESTION = {"code": ModelErrorCode.REJECTED, "detail": "400"}


class Away:
    """A cache whose server cannot be reached."""

    async def get(self, *_):
        raise Unavailable("away")

    put = acquire = release = renew = get


class Replicas:
    """Breakers of one endpoint in several processes."""

    def __init__(self, count: int = 2) -> None:
        self.clock = ManualClock()
        self.backend = MemoryCacheBackend(self.clock)
        self.breakers = [self.breaker() for _ in range(count)]

    def breaker(self, cache=None, leases=None) -> Breaker:
        return Breaker(
            "e",
            cache=cache or self.backend.cache,
            leases=leases or self.backend.leases,
            clock=self.clock,
            settings=SETTINGS,
        )

    def later(self, seconds: float) -> None:
        self.clock.advance(round(seconds * SECOND_NS))


async def attempt(breaker: Breaker, fault: dict[str, object] | None = None) -> str:
    """``answered``, ``failed`` or ``left alone``."""
    outcome = Fault(**fault) if fault else None
    try:
        async with breaker.admitted(5.0):
            await asking(outcome)
    except Fault as raised:
        return "failed" if raised is outcome else "left alone"
    return "answered"


async def asking(outcome: Fault | None) -> None:
    if outcome is not None:
        raise outcome


async def opened(replicas: Replicas) -> None:
    for _ in range(3):
        await attempt(replicas.breakers[0], ILL)


@on_loop
async def test_failures_in_a_row_open_it_for_every_replica():
    replicas = Replicas()
    first, second = replicas.breakers
    assert [await attempt(first, ILL), await attempt(second, ILL), await attempt(first, ILL)] == ["failed"] * 3
    assert [await attempt(first), await attempt(second)] == ["left alone"] * 2


@pytest.mark.parametrize("between", [None, BAD_QUESTION], ids=["an answer", "a refused question"])
@on_loop
async def test_a_sign_of_health_begins_the_count_again(between):
    breaker = Replicas().breakers[0]
    for fault in (ILL, ILL, between, ILL, ILL):
        await attempt(breaker, fault)
    assert await attempt(breaker) == "answered"


@on_loop
async def test_what_only_a_person_can_mend_opens_it_at_once_and_is_told():
    replicas = Replicas()
    await attempt(replicas.breakers[0], UNPAID)
    with pytest.raises(Fault) as caught:
        async with replicas.breakers[1].admitted(5.0):
            pass
    assert (caught.value.code, caught.value.retry_after_s) == (ModelErrorCode.SPEND_LIMIT, 10.0)
    assert (caught.value.hopeless, caught.value.usage.requests) == (True, 0)
    assert caught.value.detail == "left alone after failures: pay"


@on_loop
async def test_after_a_while_one_question_tries_and_its_answer_closes_it():
    replicas = Replicas()
    first, second = replicas.breakers
    await opened(replicas)
    replicas.later(10)
    async with first.admitted(5.0):
        assert await attempt(second) == "left alone"
    assert [await attempt(first), await attempt(second)] == ["answered"] * 2
    for _ in range(2):
        assert await attempt(first, ILL) == "failed"
    assert await attempt(second) == "answered"


@on_loop
async def test_each_failure_of_the_one_that_tries_doubles_the_while_up_to_its_longest():
    replicas = Replicas()
    await opened(replicas)
    for seconds in (10, 20, 35, 35):
        replicas.later(seconds - 0.001)
        assert await attempt(replicas.breakers[1]) == "left alone"
        replicas.later(0.001)
        assert await attempt(replicas.breakers[0], ILL) == "failed"


@on_loop
async def test_failures_of_questions_asked_before_it_opened_do_not_prolong_it():
    replicas = Replicas()
    breaker = replicas.breakers[0]
    release = asyncio.Event()

    async def slow() -> None:
        async with breaker.admitted(5.0):
            await release.wait()
            raise Fault(**ILL)

    before = [asyncio.create_task(slow()) for _ in range(4)]
    await asyncio.sleep(0)
    await opened(replicas)
    release.set()
    await asyncio.gather(*before, return_exceptions=True)
    replicas.later(10)
    assert await attempt(breaker) == "answered"


@on_loop
async def test_one_that_tries_and_dies_or_is_cancelled_lets_another_try():
    replicas = Replicas()
    first, second = replicas.breakers
    await opened(replicas)
    replicas.later(10)
    with pytest.raises(asyncio.CancelledError):
        async with first.admitted(5.0):
            raise asyncio.CancelledError
    assert await attempt(second) == "answered"


@on_loop
async def test_without_the_caches_server_it_goes_by_what_it_saw_itself():
    replicas = Replicas()
    breaker = replicas.breaker(cache=Away(), leases=Away())
    for _ in range(3):
        assert await attempt(breaker, ILL) == "failed"
    assert await attempt(breaker) == "left alone"
    replicas.later(10)
    assert await attempt(breaker) == "answered"
    assert await attempt(breaker) == "answered"
