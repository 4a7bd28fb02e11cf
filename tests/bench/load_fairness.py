"""A small search beside one with a hundred times its requests: how much longer it takes, and what priority does."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from load_searches import Followed, Load, Wish, client_of, follow, submit

SMALL = Wish(evaluations=12, at_once=1, each=4)
HUGE = Wish(evaluations=1200, at_once=40, each=4, operator="matmul")
"""An operator with thousands of schedules, so that its synthesizer never runs out of kernels."""
BACKLOG = 80
"""Outstanding requests of the huge search from which on it counts as being in the way."""
URGENT = Wish(evaluations=12, at_once=1, each=4, priority=1)
PATIENCE_S = 90.0


@dataclass(frozen=True, kw_only=True)
class Met:
    """What small searches met with: medians over searches, and over all their evaluations."""

    took_s: float
    waited_s: float
    """From an evaluation's request to its begin."""
    worked_s: float
    """What the evaluations of one search take by themselves."""


@dataclass(frozen=True, kw_only=True)
class Fairness:
    alone: Met
    beside: Met
    urgent: Met
    backlog: int
    """Requests of the huge search that waited or were worked on meanwhile."""
    first_in_s: float
    """What a request behind that backlog would wait for, first come first served."""


def measure(load: Load, repetitions: int, workers: int, mean_s: float, tell: Callable[[str], None]) -> Fairness:
    """Small searches one after the other: alone, then beside the huge one, then beside it with priority."""
    found = asyncio.run(_measure(load, repetitions, workers, mean_s))
    tell(f"a small search takes {found.alone.took_s:.1f} s alone, {found.beside.took_s:.1f} s beside a huge one,")
    tell(f"{found.urgent.took_s:.1f} s with priority; its requests wait {found.beside.waited_s:.2f} s")
    return found


async def _measure(load: Load, repetitions: int, workers: int, mean_s: float) -> Fairness:
    async with client_of(load.system) as client:
        alone = [await follow(load, client, SMALL) for _ in range(repetitions)]
        huge = await submit(load, client, HUGE)
        async with asyncio.timeout(PATIENCE_S):
            while (await client.get(huge)).evaluating < BACKLOG:
                await asyncio.sleep(0.2)
        beside = [await follow(load, client, SMALL) for _ in range(repetitions)]
        urgent = [await follow(load, client, URGENT) for _ in range(repetitions)]
        backlog = (await client.get(huge)).evaluating
        await client.cancel(huge)
    return Fairness(
        alone=_met(alone),
        beside=_met(beside),
        urgent=_met(urgent),
        backlog=backlog,
        first_in_s=backlog * mean_s / workers,
    )


def _met(found: Sequence[Followed]) -> Met:
    evaluated = [each for search in found for each in search.evaluated]
    return Met(
        took_s=statistics.median(each.took_s for each in found),
        waited_s=statistics.median(each.waited_s for each in evaluated),
        worked_s=sum(each.work_s for each in evaluated) / len(found),
    )
