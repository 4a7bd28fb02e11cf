"""The virtual-time loop itself, because every simulation stands on it."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.loop import Deadlock, run


async def _trace() -> list[tuple[str, float]]:
    seen: list[tuple[str, float]] = []
    loop = asyncio.get_running_loop()

    async def worker(name: str) -> None:
        for _ in range(3):
            await asyncio.sleep(60)
            seen.append((name, loop.time()))

    await asyncio.gather(*(worker(name) for name in "abcde"))
    return seen


def test_time_jumps_to_the_next_timer():
    assert [at for _, at in run(1, _trace())] == pytest.approx([60] * 5 + [120] * 5 + [180] * 5)


def test_equal_seeds_give_equal_traces():
    assert run(7, _trace()) == run(7, _trace())


def test_seeds_change_the_order_of_what_is_ready():
    assert len({tuple(run(seed, _trace())) for seed in range(20)}) > 10


def test_a_future_that_nobody_will_set_is_a_deadlock():
    async def hang() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(1, hang())
