"""Two processes, of one kernel or of two, timed against each other in mirrored rounds and by nothing else."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from evaluator_svc.cases import Case
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import Runner
from evaluator_svc.settings import Settings
from evaluator_svc.statistics import FEWEST_ROUNDS, Interval, log_ratios, sequence

CALLS_MAX = 4096
WARM_UP = (1, 1, 8)
"""Calls of the blocks before those that count; the last one sizes them."""


class PairFailed(Exception):
    """A kernel that should run did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """``interval``: of the one's time over the other's. ``fastest_ns``: the shortest block, per call."""

    interval: Interval
    fastest_ns: float


async def measure(
    open_first: Callable[[], Runner],
    open_second: Callable[[], Runner],
    case: Case,
    settings: Settings,
    *,
    rounds: int = FEWEST_ROUNDS,
) -> Pair:
    """Time the two runners on the inputs of ``case``. The caller has the device to itself.

    Raises:
        PairFailed: says how one of them ended.
    """
    draw = random.Random(secrets.randbits(64))  # noqa: S311 - order only
    blocks: tuple[list[float], list[float]] = ([], [])
    async with open_first() as first, open_second() as second:
        runners, warm_ns = (first, second), 1.0
        for runner in runners:
            for index, data in enumerate(case.inputs):
                runner.write_input(0, index, data)
            for calls in WARM_UP:
                warm_ns = await _block(runner, calls, settings)
        calls = max(1, min(CALLS_MAX, round(settings.timing.block_ns / max(warm_ns, 1.0))))
        for _ in range(rounds):
            begin = draw.randrange(2)
            for which in (begin, 1 - begin, 1 - begin, begin):
                blocks[which].append(await _block(runners[which], calls, settings))
    return Pair(interval=sequence(log_ratios(*blocks)), fastest_ns=min(*blocks[0], *blocks[1]))


async def _block(runner: Runner, calls: int, settings: Settings) -> float:
    """Time of one call in ns, by the controller's clock."""
    ran = await runner.run(calls, 0, settings.limits.call_s)
    if isinstance(ran, RunFailure):
        said = ", ".join(f"{entry.name} {entry.value}" for entry in ran.evidence)
        raise PairFailed(f"{ran.status.value}: {said}")
    if ran.return_code != 0:
        raise PairFailed(f"return code {ran.return_code}")
    return ran.elapsed_ns / calls
