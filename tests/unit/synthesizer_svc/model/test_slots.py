"""An endpoint is asked no more questions at once than it takes, by all replicas together."""

from __future__ import annotations

import asyncio

import pytest

from shared.cache.memory import MemoryLeases
from shared.clock import SystemClock
from shared.errors import Unavailable
from synthesizer_svc.model.faults import Fault
from synthesizer_svc.model.slots import Slots
from tests.aio import on_loop


class Counter:
    def __init__(self) -> None:
        self.now = self.most = 0

    async def ask(self, slots: Slots) -> None:
        async with slots.held(30.0):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.005)
            self.now -= 1


@on_loop
async def test_replicas_together_hold_no_more_than_there_are():
    leases, counter = MemoryLeases(SystemClock()), Counter()
    replicas = [Slots("e", 3, leases) for _ in range(4)]
    await asyncio.gather(*(counter.ask(slots) for slots in replicas for _ in range(5)))
    assert counter.most == 3


@on_loop
async def test_one_process_hands_them_out_in_turn():
    slots, order = Slots("e", 1, MemoryLeases(SystemClock())), []

    async def ask(number: int) -> None:
        async with slots.held(30.0):
            order.append(number)

    await asyncio.gather(*(ask(number) for number in range(10)))
    assert order == list(range(10))


@on_loop
async def test_one_that_does_not_get_free_in_time_is_a_fault_that_cost_nothing():
    leases = MemoryLeases(SystemClock())
    async with Slots("e", 1, leases).held(30.0):
        with pytest.raises(Fault) as caught:
            async with Slots("e", 1, leases).held(0.05):
                raise AssertionError
    assert (caught.value.code, caught.value.usage.requests, caught.value.ailing) == ("deadline", 0, False)


@pytest.mark.parametrize("error", [Fault("endpoint", "x"), asyncio.CancelledError()])
@on_loop
async def test_a_failure_gives_it_back(error):
    leases = MemoryLeases(SystemClock())
    with pytest.raises(type(error)):
        async with Slots("e", 1, leases).held(30.0):
            raise error
    async with Slots("e", 1, leases).held(1.0):
        pass


@on_loop
async def test_without_the_caches_server_each_process_keeps_the_limit_itself():
    class Away:
        async def acquire(self, name, owner, ttl_s):
            raise Unavailable("away")

    slots, counter = Slots("e", 2, Away()), Counter()
    await asyncio.gather(*(counter.ask(slots) for _ in range(8)))
    assert counter.most == 2
