"""Every service is drained and started again in turn while clients go on calling."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from cli.client import KernelEvolveClient
from shared.errors import KernelEvolveError
from tests.chaos.faults import CHIP, NAMES, evaluator
from tests.chaos.play import Tell, ended, submit, submitted
from tests.chaos.system import System
from tests.chaos.wishes import Wish

CALL_EVERY_S = 0.1


@dataclass(kw_only=True)
class Calls:
    """What clients saw. Failures are what a call raised after the client's own, documented retries."""

    made: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    longest_s: float = 0.0

    async def make(self, name: str, call: Callable[[], Awaitable[object]]) -> None:
        began_s = time.monotonic()
        self.made[name] += 1
        try:
            await call()
        except KernelEvolveError as error:
            self.failed.append(f"{name} after {time.monotonic() - began_s:.1f} s: {error}")
        self.longest_s = max(self.longest_s, time.monotonic() - began_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolled:
    """``seconds`` that each service took from the order to stop until it answered again."""

    seconds: dict[str, float]
    calls: Calls
    watches: int
    missed: tuple[str, ...]
    """What watches did not show once and in order."""

    @property
    def problems(self) -> list[str]:
        return [*self.calls.failed, *self.missed]


async def roll(system: System, workers: int, wishes: Sequence[Wish], *, within_s: float, tell: Tell) -> Rolled:
    """Run ``wishes`` while every service is restarted once.

    Raises:
        TimeoutError: some search did not end ``within_s`` of the last restart.
    """
    names = (*NAMES, *(evaluator(number) for number in range(1, workers + 1)))
    calls, done, seconds = Calls(), asyncio.Event(), {}
    async with system.client() as client:
        ids = await submit(client, wishes)
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(_watched(client, each)) for each in ids]
            calling = group.create_task(_call(client, wishes, ids, calls, done))
            for name in names:
                began_s = time.monotonic()
                await asyncio.to_thread(system.cluster.restart, name)
                await asyncio.to_thread(system.cluster.wait_until_ready, [name])
                seconds[name] = time.monotonic() - began_s
                tell(f"          {name} restarted within {seconds[name]:.1f} s, {len(calls.failed)} calls failed")
            await ended(client, ids, within_s, tell)
            done.set()
            await calling
    missed = [f"search {each}: {task.result()}" for each, task in zip(ids, watching, strict=True) if task.result()]
    return Rolled(seconds=seconds, calls=calls, watches=len(ids), missed=tuple(missed))


async def _watched(client: KernelEvolveClient, search_id: str) -> str:
    """What is wrong with the positions that a watch from the start shows; empty when nothing is."""
    seen = [step.seq async for step in client.watch(search_id)]
    length = (await client.get(search_id)).journal_length
    return "" if seen[:length] == list(range(length)) else f"of {length} entries the watch showed {seen}"


async def _call(
    client: KernelEvolveClient, wishes: Sequence[Wish], ids: Sequence[str], calls: Calls, done: asyncio.Event
) -> None:
    number = 0
    async with asyncio.TaskGroup() as group:
        while not done.is_set():
            wish, search_id = wishes[number % len(wishes)], ids[number % len(ids)]
            for name, call in (
                ("Submit", lambda wish=wish: submitted(client, wish)),
                ("Get", lambda search_id=search_id: client.get(search_id)),
                ("List", lambda: _all(client.list(chip=CHIP))),
                ("GetTree", lambda search_id=search_id: _all(client.tree(search_id))),
                ("ListPools", client.pools),
            ):
                group.create_task(calls.make(name, call))
                await asyncio.sleep(CALL_EVERY_S)
            number += 1


async def _all(found) -> int:
    return len([each async for each in found])
