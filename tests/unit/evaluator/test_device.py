"""Two programs on one machine, or two workers with one lease store, do not time at once."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from evaluator_svc.device import Device
from shared.adapters import open_cache
from shared.clock import SECOND_NS, ManualClock, SystemClock
from shared.errors import Retryable, Unavailable
from tests.aio import on_loop, until


def device(leases, lock: Path, owner: str, wait_s: float = 30.0) -> Device:
    return Device(leases, lock, name="cpu", owner=owner, lease_s=60.0, wait_s=wait_s)


async def both_inside(first: Device, second: Device) -> bool:
    """Whether ``second`` gets in while ``first`` is inside; afterwards it must."""
    entered = asyncio.Event()

    async def enter() -> None:
        async with second.exclusive():
            entered.set()

    async with first.exclusive() as token:
        waiting = asyncio.create_task(enter())
        for _ in range(50):
            await asyncio.sleep(0)
        together = entered.is_set()
        assert await first.held(token)
    await waiting
    assert entered.is_set()
    return together


@on_loop
async def test_programs_with_leases_of_their_own_take_turns_by_the_lock_file(tmp_path: Path):
    async with open_cache("memory:", SystemClock()) as one, open_cache("memory:", SystemClock()) as other:
        lock = tmp_path / "device.lock"
        assert not await both_inside(device(one.leases, lock, "a"), device(other.leases, lock, "b"))


@on_loop
async def test_workers_with_one_lease_store_take_turns_by_the_lease(tmp_path: Path):
    async with open_cache("memory:", SystemClock()) as shared:
        first, second = (device(shared.leases, tmp_path / f"{name}.lock", name) for name in ("a", "b"))
        assert not await both_inside(first, second)


@on_loop
async def test_waiting_in_vain_is_retryable(tmp_path: Path):
    async with open_cache("memory:", SystemClock()) as shared:
        first = device(shared.leases, tmp_path / "a.lock", "a")
        second = device(shared.leases, tmp_path / "b.lock", "b", wait_s=0.05)
        async with first.exclusive():
            with pytest.raises(Retryable, match="not free"):
                async with second.exclusive():
                    raise AssertionError("both inside")
        async with second.exclusive():
            pass


@on_loop
async def test_the_lease_is_renewed_for_as_long_as_the_device_is_in_use(tmp_path: Path):
    class Leases:
        def __init__(self, inner) -> None:
            self.inner, self.renewals = inner, 0

        def __getattr__(self, name: str):
            return getattr(self.inner, name)

        async def renew(self, *arguments) -> bool:
            renewed = await self.inner.renew(*arguments)
            self.renewals += 1
            return renewed

    clock = ManualClock()
    async with open_cache("memory:", clock) as shared:
        leases = Leases(shared.leases)
        mine = Device(leases, tmp_path / "a.lock", name="cpu", owner="a", lease_s=0.06, wait_s=30.0)
        name = f"device/{socket.gethostname()}/cpu"
        async with mine.exclusive():
            for _ in range(5):
                clock.advance(SECOND_NS * 4 // 100)
                assert await shared.leases.acquire(name, "b", 1.0) is None
                before = leases.renewals
                await until(lambda before=before: leases.renewals > before)
        assert await shared.leases.acquire(name, "b", 1.0) is not None


@on_loop
async def test_a_worker_that_died_with_the_lease_keeps_nobody_waiting_for_longer_than_its_time(tmp_path: Path):
    async with open_cache("memory:", SystemClock()) as shared:
        assert await shared.leases.acquire(f"device/{socket.gethostname()}/cpu", "dead", 0.05) is not None
        async with device(shared.leases, tmp_path / "a.lock", "a").exclusive() as token:
            assert token > 1


@on_loop
async def test_a_cache_that_goes_away_is_waited_for(tmp_path: Path):
    class Leases:
        def __init__(self, inner) -> None:
            self.inner, self.failures = inner, 2

        def __getattr__(self, name: str):
            async def call(*arguments):
                if self.failures:
                    self.failures -= 1
                    raise Unavailable("no cache")
                return await getattr(self.inner, name)(*arguments)

            return call

    async with open_cache("memory:", SystemClock()) as shared:
        leases = Leases(shared.leases)
        async with device(leases, tmp_path / "a.lock", "a").exclusive() as token:
            leases.failures = 1
            assert await device(leases, tmp_path / "a.lock", "a").held(token)
            leases.failures = 1  # at the release: it expires by itself
