"""A worker of a chip's pool: its intake, its slots and its announcements, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evaluator_svc.capacity import Announcer, worker_id
from evaluator_svc.evaluators import Evaluates
from evaluator_svc.exported import Exported, Samples
from evaluator_svc.intake import Intake
from evaluator_svc.observer import Observer
from evaluator_svc.slot import Slot, Stuck
from shared.ports import Ports


class Worker:
    """See the module. ``when_stuck`` is called once an evaluation cannot be ended; ``run`` then raises ``Stuck``."""

    def __init__(
        self,
        ports: Ports,
        evaluator: Evaluates,
        *,
        observer: Observer | None = None,
        when_stuck: Callable[[], None] = lambda: None,
    ) -> None:
        settings = evaluator.settings
        self.id, self.chip, self.slots = worker_id(), settings.chip, settings.pool.slots
        self.observer = observer or Exported(self.chip)
        self.draining = False
        self.when_stuck = when_stuck
        self._intake = Intake(
            bus=ports.bus,
            queues=ports.cache.queues,
            clock=ports.clock,
            chip=settings.chip,
            limits=settings.pool,
            observer=self.observer,
        )
        self._slots = [
            Slot(
                ports=ports,
                evaluator=evaluator,
                chip=settings.chip,
                worker=self.id,
                limits=settings.pool,
                observer=self.observer,
            )
            for _ in range(self.slots)
        ]
        self._samples = Samples(self.chip, ports.cache.queues, slots=self._taking, lag=self.lag)
        self._announcer = Announcer(
            bus=ports.bus,
            clock=ports.clock,
            worker=self.id,
            chip=self.chip,
            slots=self.slots,
            every_s=settings.pool.announce_s,
        )

    @property
    def busy(self) -> int:
        """Slots that are working."""
        return sum(slot.busy for slot in self._slots)

    def lag(self) -> int:
        """Requests on this worker's partitions that are not finished: what a pool is scaled by."""
        return self._intake.lag()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set and the slots are drained.

        Raises:
            Stuck: an evaluation could not be ended; the process should end.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._note_draining(stop))
                group.create_task(self._announcer.run(stop))
                group.create_task(self._samples.run(stop))
                group.create_task(self._intake.run(stop))
                for slot in self._slots:
                    group.create_task(slot.run(stop))
        except* Stuck:
            self.when_stuck()
            raise
        finally:
            await self._announcer.gone()

    def _taking(self) -> int:
        """Slots that take new work."""
        return 0 if self.draining else self.slots

    async def _note_draining(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.draining = True
