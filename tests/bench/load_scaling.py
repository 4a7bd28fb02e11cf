"""One worker against eight: throughput and utilization while there is enough work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from load_searches import Evaluated, Load, Wish, follow_all
from load_system import Durations, System, cpu_between, per_evaluation

FEW, MANY = 1, 8
BACKLOG = 2
"""Requests that wait or are worked on, per worker, below which work counts as running out."""
DURATIONS = Durations(median_s=0.4, longest_s=4.0)
MEAN_S = 0.63
SEARCHES = 6


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a pool did while at least ``BACKLOG`` requests per worker were outstanding.

    An evaluation that lies partly in the window counts in part.
    """

    workers: int
    seconds: float
    evaluations: float
    work_s: float
    """Of the evaluations, by the simulated chip's rule: how long they take however slow the machine is."""
    occupied_s: float
    """Time that workers were seen evaluating."""

    @property
    def rate(self) -> float:
        """Evaluations per second."""
        return self.evaluations / self.seconds

    @property
    def throughput(self) -> float:
        """Seconds of work done per second."""
        return self.work_s / self.seconds

    @property
    def utilization(self) -> float:
        return self.occupied_s / (self.workers * self.seconds)


@dataclass(frozen=True, kw_only=True)
class Repetition:
    few: Window
    many: Window
    cpu_s: dict[str, float]
    """Of the run with many workers, by kind of process."""
    done: int
    """Evaluations of that run."""

    @property
    def ratio(self) -> float:
        return self.many.throughput / self.few.throughput


def repeat(cluster: System, load: Load, seconds: float, tell: Callable[[str], None]) -> Repetition:
    """One worker and then many, for about ``seconds`` each. Afterwards many run."""
    _use(cluster, load, FEW)
    few, _ = asyncio.run(_run(load, FEW, seconds))
    _use(cluster, load, MANY)
    before = cluster.usage()
    many, done = asyncio.run(_run(load, MANY, seconds))
    cpu_s = cpu_between(before, cluster.usage())
    found = Repetition(few=few, many=many, cpu_s=cpu_s, done=done)
    tell(f"{MANY} workers do {found.ratio:.2f} times the work of {FEW}; utilization {many.utilization:.1%}")
    tell(f"CPU ms per evaluation: {per_evaluation(cpu_s, done)}")
    return found


def _use(cluster: System, load: Load, workers: int) -> None:
    """Ends once requests come through again: partitions have moved."""
    cluster.use_workers(workers)
    asyncio.run(follow_all(load, [Wish(evaluations=4, at_once=2, each=2)] * 4))


async def _run(load: Load, workers: int, seconds: float) -> tuple[Window, int]:
    searches = SEARCHES if workers > 1 else 1
    evaluations = max(8, round(workers * seconds / MEAN_S / searches))
    found = await follow_all(load, [Wish(evaluations=evaluations)] * searches)
    evaluated = [each for search in found for each in search.evaluated]
    return window(evaluated, workers), len(evaluated)


def window(evaluated: Sequence[Evaluated], workers: int) -> Window:
    """The longest stretch with enough work for ``workers``."""
    begin_s, end_s = _enough(evaluated, BACKLOG * workers)
    shares = [(each, _overlap(each, begin_s, end_s) / (each.end_s - each.begin_s)) for each in evaluated]
    return Window(
        workers=workers,
        seconds=end_s - begin_s,
        evaluations=sum(share for _, share in shares),
        work_s=sum(share * each.work_s for each, share in shares),
        occupied_s=sum(share * (each.end_s - each.begin_s) for each, share in shares),
    )


def _enough(evaluated: Sequence[Evaluated], wanted: int) -> tuple[float, float]:
    changes = sorted([(each.requested_s, 1) for each in evaluated] + [(each.end_s, -1) for each in evaluated])
    outstanding, since_s = 0, float("inf")
    found: list[tuple[float, float]] = []
    for at_s, change in changes:
        outstanding += change
        if outstanding >= wanted:
            since_s = min(since_s, at_s)
        elif since_s <= at_s:
            found.append((since_s, at_s))
            since_s = float("inf")
    if not found:
        raise RuntimeError(f"never {wanted} requests outstanding")
    return max(found, key=lambda stretch: stretch[1] - stretch[0])


def _overlap(each: Evaluated, begin_s: float, end_s: float) -> float:
    return max(0.0, min(each.end_s, end_s) - max(each.begin_s, begin_s))
