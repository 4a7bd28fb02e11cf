"""What a worker tells about itself, as metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields

from evaluator_svc.intake import group_of
from evaluator_svc.observer import Happening
from shared import metrics, topics
from shared.cache import WorkQueues
from shared.clock import SECOND_NS
from shared.errors import Unavailable
from shared.events import Evaluation
from shared.periodic import every

SAMPLE_EVERY_S = 5.0
"""Pause between looks at the queue. A third of a usual scrape interval."""


class Exported:
    """The observer of one worker."""

    def __init__(self, chip: str) -> None:
        self._chip = chip
        for what in Happening:
            metrics.POOL.inc(chip, what.value, by=0)  # a query sees a first event only as growth from something

    def happened(self, what: Happening) -> None:
        metrics.POOL.inc(self._chip, what.value)

    def claimed(self, wait_ns: int) -> None:
        metrics.QUEUE_WAIT_SECONDS.observe(wait_ns / SECOND_NS, self._chip)

    def answered(self, evaluation: Evaluation, busy_ns: int) -> None:
        metrics.EVALUATIONS.inc(self._chip, evaluation.status.value, str(evaluation.memoised).lower())
        metrics.BUSY_SECONDS.inc(self._chip, by=busy_ns / SECOND_NS)
        if evaluation.memoised:
            return  # its stages are those of the evaluation that is remembered
        for stage in fields(evaluation.stages):
            seconds = getattr(evaluation.stages, stage.name) / SECOND_NS
            metrics.STAGE_SECONDS.observe(seconds, self._chip, stage.name.removesuffix("_ns"))


class Samples:
    """What nothing announces: the queue's depth, how far the intake is behind, slots."""

    def __init__(self, chip: str, queues: WorkQueues, *, slots: Callable[[], int], lag: Callable[[], int]) -> None:
        """``slots`` is how many take new work now, ``lag`` how many records its intake has not committed."""
        self._chip, self._queues, self._slots, self._lag = chip, queues, slots, lag

    async def run(self, stop: asyncio.Event) -> None:
        """Sample until ``stop``; then there are no slots any more."""
        await every(SAMPLE_EVERY_S, self.sample, stop)
        metrics.SLOTS.set(0, self._chip)

    async def sample(self) -> None:
        metrics.SLOTS.set(self._slots(), self._chip)
        metrics.LAG.set(self._lag(), topics.evaluation_requests(self._chip), group_of(self._chip), self._chip)
        try:
            depth = await self._queues.depth(self._chip)
        except Unavailable:
            return  # ``dependency_up`` tells it; the last known depth is the best there is
        metrics.QUEUE_DEPTH.set(depth.waiting, self._chip, "waiting")
        metrics.QUEUE_DEPTH.set(depth.claimed, self._chip, "claimed")
