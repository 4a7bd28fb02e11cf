"""A worker of a chip's pool: its intake, its slots and its announcements, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evaluator_svc.canary import Finding
from evaluator_svc.capacity import Announcer, worker_id
from evaluator_svc.evaluators import Evaluates
from evaluator_svc.exported import Exported, Samples
from evaluator_svc.intake import Intake
from evaluator_svc.observer import Happening, Observer
from evaluator_svc.quarantine import Quarantine, Standing
from evaluator_svc.slot import Slot, Stuck
from shared.clock import SECOND_NS
from shared.errors import Fatal
from shared.ports import Ports


class Unsound(Fatal):
    """The worker has failed its own test too often: no verdict of it is worth anything."""


class Worker:
    """See the module. ``when_stuck`` is called once an evaluation cannot be ended; ``run`` then raises ``Stuck``.

    A worker that is out for good stays, so that its probes and announcements say why, unless ``leaves_when_out``: then
    ``run`` raises ``Unsound``.
    """

    def __init__(
        self,
        ports: Ports,
        evaluator: Evaluates,
        *,
        observer: Observer | None = None,
        when_stuck: Callable[[], None] = lambda: None,
        leaves_when_out: bool = False,
    ) -> None:
        settings = evaluator.settings
        self.id, self.chip, self.slots = worker_id(), settings.chip, settings.pool.slots
        self.observer = observer or Exported(self.chip)
        self.draining = False
        self.quarantine = Quarantine(settings.canary)
        self._evaluator, self._clock = evaluator, ports.clock
        self.when_stuck, self._leaves_when_out = when_stuck, leaves_when_out
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
                quarantine=self.quarantine,
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
            quarantine=self.quarantine,
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
            Unsound: see the class.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._note_draining(stop))
                group.create_task(self._announcer.run(stop))
                group.create_task(self._stay_sound(stop))
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
        return 0 if self.draining or not self.quarantine.working else self.slots

    async def _stay_sound(self, stop: asyncio.Event) -> None:
        """Try the worker at the start, between jobs, and after a back-off when it was found unsound."""
        quarantine, thorough = self.quarantine, False
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set() and quarantine.standing is not Standing.OUT:
                if quarantine.due(self._now_s()):
                    probing = asyncio.create_task(self._evaluator.probe(thorough=thorough))
                    await asyncio.wait({stopping, probing}, return_when=asyncio.FIRST_COMPLETED)
                    if not probing.done():
                        probing.cancel()
                        await asyncio.wait({probing})
                        return
                    self._note(probing.result(), thorough=thorough)
                    thorough = quarantine.working  # a worker that is out of work is let in by a quick probe
                quarantine.wake.clear()
                waking = asyncio.create_task(quarantine.wake.wait())
                await asyncio.wait(
                    {stopping, waking},
                    timeout=quarantine.wait_s(self._now_s()),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waking.cancel()
        finally:
            stopping.cancel()

    def _note(self, found: Finding, *, thorough: bool) -> None:
        self.quarantine.probed(found, self._now_s(), thorough=thorough)
        self.observer.happened(Happening.PROBED)
        if not found.healthy:
            self.observer.happened(Happening.UNSOUND)
        if self.quarantine.standing is Standing.OUT and self._leaves_when_out:
            raise Unsound(f"this machine's evaluator fails its own test: {found.fault}")

    def hindered(self) -> str:
        """Why it takes no work now; empty when it does."""
        return self.quarantine.reason

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / SECOND_NS

    async def _note_draining(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.draining = True
