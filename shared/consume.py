"""The one consume loop: poll, handle, commit last.

- Records of one partition are handled one after the other; partitions side by side, up to ``in_flight`` records in
  hand. What becomes of one record is ``shared.handling``'s; what that raises stops the loop, and nothing that was in
  hand is committed: whoever starts it again sees it again.
- With its hands full the loop pauses the subscription and still polls it, because a member that does not poll is
  thrown out of its group, however alive it is (https://github.com/aio-libs/aiokafka/issues/848). A poll is never
  cancelled: that breaks the driver's liveness check.
- What was taken in hand is handled, also when its partition has moved away since: the partition may be back, and then
  nobody delivers these records again. Whoever else handles them too does the same thing, by the same ids.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from shared.burial import place
from shared.bus import Bus, Delivery, Subscription
from shared.clock import Clock
from shared.errors import Fatal, Unavailable
from shared.handling import Handler, Handling, Sleep, Tries

__all__ = ["ConsumeLimits", "Consumer", "Handler"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeLimits:
    """Every limit of the loop."""

    poll_wait_s: float = 0.25
    """How long one poll waits; also how late a stop is noticed."""
    attempts_max: int = 6
    """Tries of a handler that raises ``Retryable``, the first included."""
    backoff_s: float = 0.1
    """Longest pause before the second try; doubles for each further one."""
    backoff_max_s: float = 10.0
    poison_in_a_row_max: int = 1000
    """Well-formed records refused in a row after which the loop stops (Arroyo calls it a DLQ limit): a reader that is
    wrong, as after a bad deployment, refuses everything; a stranger who writes nonsense should not end it."""
    drain_s: float = 30.0
    """How long handlers at work may go on after the loop was told to stop; then they are abandoned, uncommitted."""


@dataclass(slots=True)
class _Lane:
    """One partition's records in hand, oldest first, and the task that works on them."""

    records: deque[Delivery] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class Consumer:
    """Runs ``handler`` over an open subscription until ``stop`` is set."""

    def __init__(
        self,
        *,
        bus: Bus,
        subscription: Subscription,
        handler: Handler,
        clock: Clock,
        group: str = "",
        in_flight: int = 1,
        limits: ConsumeLimits | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        limits = limits or ConsumeLimits()
        tries = Tries(
            attempts_max=limits.attempts_max,
            backoff_s=limits.backoff_s,
            backoff_max_s=limits.backoff_max_s,
            poison_in_a_row_max=limits.poison_in_a_row_max,
        )
        self._handling = Handling(
            bus=bus, handler=handler, clock=clock, group=group, tries=tries, sleep=sleep, jitter=jitter
        )
        self._subscription, self._in_flight, self._limits, self._sleep = subscription, in_flight, limits, sleep
        self._lanes: dict[int, _Lane] = {}
        self._paused = False
        self._polls_failed = 0
        self._poll: asyncio.Task[Delivery | None] | None = None
        self._over = asyncio.Event()
        """Nobody waits for records any more."""

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until ``stop`` is set and the handlers at work are done, or abandoned after ``drain_s``.

        Raises:
            Fatal: tries or poison ran out.
            Exception: what the handler raised, unchanged.
        """
        try:
            while not stop.is_set():
                await self._turn(stop)
            await self._drain(stop)
        finally:
            await self._let_go()

    async def _turn(self, stop: asyncio.Event) -> None:
        """Wait for a poll or a lane to end, and take in what came."""
        self._pause_when_full()
        poll = self._pending_poll(stop)
        await asyncio.wait({poll, *self._working()}, return_when=asyncio.FIRST_COMPLETED)
        self._reap()
        if not poll.done():
            return
        delivery = self._taken(poll)
        if delivery is None or stop.is_set():
            return
        if self._paused:
            raise Fatal("a paused subscription delivered a record")
        lane = self._lanes.setdefault(delivery.partition, _Lane())
        lane.records.append(delivery)
        if lane.task is None:
            lane.task = asyncio.create_task(self._work_on(lane, stop))

    async def _work_on(self, lane: _Lane, stop: asyncio.Event) -> None:
        while lane.records and not stop.is_set():
            delivery = lane.records[0]
            await self._handling.handle(delivery)
            await self._commit(delivery)
            lane.records.popleft()
            self._handling.check(delivery)

    async def _commit(self, delivery: Delivery) -> None:
        where = place(delivery)
        try:
            if not await self._subscription.commit(delivery):
                log.info("%s: not committed, the partition moved to another member", where)
        except Unavailable as error:
            log.warning("%s: not committed, it will come again: %s", where, error)

    async def _drain(self, stop: asyncio.Event) -> None:
        """Polling on, until nothing is at work or time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.drain_s
        self._subscription.pause()
        while self._working() and (left_s := deadline - loop.time()) > 0:
            poll = self._pending_poll(stop)
            await asyncio.wait({poll, *self._working()}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            self._reap()
            if poll.done():
                self._taken(poll)
        for lane in self._lanes.values():
            if lane.task is not None and lane.records:
                log.warning("%s: abandoned uncommitted, its handler outlasted the drain", place(lane.records[0]))

    async def _let_go(self) -> None:
        self._over.set()
        working = self._working()
        for task in working:
            task.cancel()
        settling: list[asyncio.Task[Any]] = [*working, *([self._poll] if self._poll is not None else [])]
        for task in settling:
            task.add_done_callback(_heard)  # also of one that this does not wait for, because it is cancelled itself
        if settling:
            await asyncio.wait(settling)

    def _pause_when_full(self) -> None:
        full = sum(len(lane.records) for lane in self._lanes.values()) >= self._in_flight
        if full and not self._paused:
            self._subscription.pause()
        elif self._paused and not full:
            self._subscription.resume()
        self._paused = full

    def _working(self) -> list[asyncio.Task[None]]:
        return [lane.task for lane in self._lanes.values() if lane.task is not None]

    def _reap(self) -> None:
        """Forget lanes that are through. Raises what stopped one that is not."""
        for partition, lane in list(self._lanes.items()):
            if lane.task is None or not lane.task.done():
                continue
            if lane.task.cancelled():
                raise Fatal(f"{place(lane.records[0])}: the handler cancelled itself")
            task, lane.task = lane.task, None
            task.result()
            del self._lanes[partition]

    def _taken(self, poll: asyncio.Task[Delivery | None]) -> Delivery | None:
        """What the finished ``poll`` brought."""
        self._poll = None
        return poll.result()

    def _pending_poll(self, stop: asyncio.Event) -> asyncio.Task[Delivery | None]:
        """The poll in progress; at most one, because a poll outlives the wait for a handler."""
        if self._poll is None:
            self._poll = asyncio.create_task(self._polled(stop))
        return self._poll

    async def _polled(self, stop: asyncio.Event) -> Delivery | None:
        """One poll. A bus that is gone brings nothing, after a pause."""
        try:
            delivery = await self._subscription.poll(self._limits.poll_wait_s)
        except Unavailable as error:
            self._polls_failed += 1
            log.warning("poll %d in a row failed: %s", self._polls_failed, error)
            await self._wait_for_bus(stop)
            return None
        self._polls_failed = 0
        return delivery

    async def _wait_for_bus(self, stop: asyncio.Event) -> None:
        """Pause after a failed poll, until told to stop at the latest; while draining, for as long as a poll."""
        draining = stop.is_set()
        pause_s = self._limits.poll_wait_s if draining else self._handling.pause_s(self._polls_failed)
        told = [self._over] if draining else [self._over, stop]
        waits = {asyncio.ensure_future(self._sleep(pause_s)), *(asyncio.create_task(event.wait()) for event in told)}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()


def _heard(task: asyncio.Task[Any]) -> None:
    """Look at the error of ``task``, which somebody else reports or which no longer matters."""
    if not task.cancelled():
        task.exception()
