"""From the topic of a chip into its pool's queue.

Every worker is a member of the chip's consumer group and moves what its partitions hold into the shared queue, from
which any worker takes any request. So a partition with long evaluations idles nobody, and a search that floods its
partition holds up no other.

Crash model: an offset is committed once everything before it on its partition is *finished*. What the group has not
committed is therefore what is outstanding; a worker that dies, and a queue that loses its data, lose nothing: the
request comes again from the topic, or is added again by the intake that still holds it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import NoReturn

from evaluator_svc.observer import Happening, Observer
from evaluator_svc.pausing import pause
from evaluator_svc.settings import PoolLimits
from evaluator_svc.tracking import Tracked, Tracking
from shared import metrics, topics, wire
from shared.burial import bury, place
from shared.bus import Bus, Delivery, Subscription
from shared.cache import Work, WorkQueues, WorkState
from shared.clock import SECOND_NS, Clock
from shared.errors import Fatal, Poison, Unavailable
from shared.events import EvaluationRequested
from shared.patience import patiently

PAUSE_S = 0.5
"""Longest pause after a poll that found no broker."""
REFUSED_IN_A_ROW_MAX = 1000
"""Well-formed records refused in a row after which it is the worker that is wrong (see ``shared.consume``)."""

log = logging.getLogger(__name__)


def group_of(chip: str) -> str:
    """The consumer group of a chip's pool."""
    return f"evaluator.{chip}"


class Intake:
    """A member of the chip's group; see the module."""

    def __init__(
        self, *, bus: Bus, queues: WorkQueues, clock: Clock, chip: str, limits: PoolLimits, observer: Observer
    ) -> None:
        self._bus, self._queues, self._clock = bus, queues, clock
        self._chip, self._limits, self._observer = chip, limits, observer
        self._topic = topics.evaluation_requests(chip)
        self._tracking = Tracking()
        self._arrivals: asyncio.Queue[tuple[Tracked, Work | Poison]] = asyncio.Queue()
        self._refused_in_a_row = 0
        self._subscription: Subscription | None = None

    def lag(self) -> int:
        """Requests on this worker's partitions that are not finished, as far as it knows."""
        return self._subscription.lag() if self._subscription is not None else 0

    async def run(self, stop: asyncio.Event) -> None:
        """Take in until ``stop`` is set. What is in flight then is left uncommitted: it is somebody else's.

        Raises:
            Fatal: too many well-formed records in a row are not for this chip.
        """
        async with AsyncExitStack() as stack:
            subscription = self._bus.subscribe(self._topic, group_of(self._chip))
            if not await self._join(subscription, stack, stop):
                return
            self._subscription = subscription
            try:
                async with asyncio.TaskGroup() as group:
                    work = [group.create_task(self._add_arrivals()), group.create_task(self._settle_for_ever())]
                    await self._poll_until(stop, subscription)
                    for task in work:
                        task.cancel()
                await self._settle_once()
            finally:
                self._subscription = None

    async def _join(self, subscription: Subscription, stack: AsyncExitStack, stop: asyncio.Event) -> bool:
        """False when told to stop before the bus could be reached."""
        while not stop.is_set():
            try:
                await stack.enter_async_context(subscription)
            except Unavailable as error:
                log.warning("cannot subscribe to %s: %s", self._topic, error)
                await pause(stop, PAUSE_S)
            else:
                return True
        return False

    async def _poll_until(self, stop: asyncio.Event, subscription: Subscription) -> None:
        """Polls without a break: a member that does not is thrown out of its group. A poll is never cancelled."""
        paused = False
        while not stop.is_set():
            full = len(self._tracking) >= self._limits.intake_max
            if full is not paused:
                (subscription.pause if full else subscription.resume)()
                paused = full
            try:
                delivery = await subscription.poll(self._limits.poll_wait_s)
            except Unavailable as error:
                log.warning("%s: %s", self._topic, error)
                await pause(stop, PAUSE_S)
                continue
            if delivery is not None:
                self._arrived(delivery)

    def _arrived(self, delivery: Delivery) -> None:
        work: Work | Poison
        try:
            work = self._work_of(delivery)
        except Poison as error:
            work = error
        tracked = self._tracking.track(delivery, work.id if isinstance(work, Work) else "")
        if tracked is not None:
            self._arrivals.put_nowait((tracked, work))

    def _work_of(self, delivery: Delivery) -> Work:
        """What the queue takes: the request, dated with its publication, because a command carries its cause's time."""
        envelope = wire.decode(delivery.record)
        published_ns = delivery.published_ns or envelope.time_ns
        request = envelope.event
        if not isinstance(request, EvaluationRequested):
            self._refuse(f"{type(request).__name__} on {self._topic}")
        if request.chip != self._chip:
            self._refuse(f"a request for chip `{request.chip}` on the queue of `{self._chip}`")
        body = wire.pack(replace(envelope, time_ns=published_ns))
        try:
            work = Work(id=request.evaluation_id, flow=request.search_id, body=body, priority=request.priority)
        except ValueError as error:
            self._refuse(str(error))
        self._refused_in_a_row = 0
        return work

    def _refuse(self, why: str) -> NoReturn:
        self._refused_in_a_row += 1
        if self._refused_in_a_row > REFUSED_IN_A_ROW_MAX:
            raise Fatal(f"{self._refused_in_a_row} records in a row were not for this worker, the last: {why}")
        raise Poison(why)

    async def _add_arrivals(self) -> None:
        while True:
            tracked, work = await self._arrivals.get()
            if isinstance(work, Poison):
                group = group_of(self._chip)
                await bury(self._bus, self._clock, tracked.delivery, work, group=group, attempts=1)
                self._observer.happened(Happening.POISON)
                tracked.finished = True
            elif self._tracking.is_tracked(tracked):
                self._note_hop(tracked.delivery.published_ns)
                adding = partial(self._queues.add, self._chip, work)
                await patiently(adding, f"add to the queue of {self._chip}")
                self._observer.happened(Happening.TAKEN_IN)
                tracked.added = True

    def _note_hop(self, published_ns: int) -> None:
        if published_ns:
            waited_ns = max(0, self._clock.now_ns() - published_ns)
            metrics.HOP_SECONDS.observe(waited_ns / SECOND_NS, self._topic, group_of(self._chip))

    async def _settle_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._limits.settle_s)
            await self._settle_once()

    async def _settle_once(self) -> None:
        try:
            await self.settle()
        except Unavailable as error:
            log.warning("the queue of %s: %s", self._chip, error)

    async def settle(self) -> None:
        """See what became of the requests in flight, add again what the queue has lost, commit what is finished.

        Raises:
            Unavailable: the cache is gone.
        """
        waited_for = {tracked.work_id: tracked for tracked in self._tracking.waited_for()}
        if waited_for:
            states = await self._queues.states(self._chip, list(waited_for))
            self._tracking.finish({each for each, state in states.items() if state is WorkState.FINISHED})
            for each in [each for each, state in states.items() if state is WorkState.UNKNOWN]:
                await self._queues.add(self._chip, self._work_of(waited_for[each].delivery))
                self._observer.happened(Happening.ADDED_AGAIN)
        await self._commit_finished()

    async def _commit_finished(self) -> None:
        assert self._subscription is not None
        for tracked in self._tracking.committable():
            try:
                ours = await self._subscription.commit(tracked.delivery)
            except Unavailable as error:
                log.warning("%s: not committed, tried again later: %s", place(tracked.delivery), error)
                return
            if ours:
                self._tracking.committed(tracked)
            else:
                self._tracking.forget(tracked.delivery.partition)
                self._observer.happened(Happening.FORGOTTEN)
