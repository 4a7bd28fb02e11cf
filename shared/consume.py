"""The one consume loop: poll, decode, handle, commit last.

- A record that cannot be decoded, or whose handler says ``Poison``, goes to the dead-letter topic with its bytes
  unchanged and is committed. Too many in a row that decode and are refused mean that the reader is wrong, not the
  records: the loop stops. Garbage stops nothing: it can be written by anybody, and a dead letter can be redriven.
- ``Retryable`` is tried again in place after a capped, jittered pause; out of tries it stops the loop. ``Unavailable``
  is tried for as long as it takes, also when it is the bus that says so: the record waits, the member stays alive.
- Anything else the handler raises stops the loop and is not committed: whoever starts it again sees the record again.
- One record is in flight at a time. While its handler runs, the subscription is paused and still polled, because a
  member that does not poll is thrown out of its group, however alive it is
  (https://github.com/aio-libs/aiokafka/issues/848). A poll is never cancelled: that breaks the driver's liveness check.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared import envelopes, logs, metrics, tracing, wire
from shared.burial import bury, place
from shared.bus import Bus, Delivery, Subscription
from shared.clock import SECOND_NS, Clock
from shared.errors import Fatal, Poison, Retryable, Unavailable
from shared.events import Envelope

Handler = Callable[[Envelope], Awaitable[None]]
Sleep = Callable[[float], Awaitable[object]]

OUTCOMES = ("handled", "poison", "retried")
"""What a record or a try can end as, in ``metrics.RECORDS``."""

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
    poison_in_a_row_max: int = 20
    """Well-formed records refused in a row after which the loop stops (Arroyo calls it a DLQ limit)."""
    drain_s: float = 30.0
    """How long a handler in flight may go on after the loop was told to stop; then it is abandoned, uncommitted."""


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
        limits: ConsumeLimits | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        self._bus, self._subscription, self._handler, self._clock = bus, subscription, handler, clock
        self._group = group
        """Names the consumer in metrics; the subscription is a member of it already."""
        self._limits = limits or ConsumeLimits()
        self._sleep = sleep
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, decides nothing
        self._poison_in_a_row = 0
        self._polls_failed = 0
        self._poll: asyncio.Task[Delivery | None] | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until ``stop`` is set and the record in flight is done with, or abandoned after ``drain_s``.

        Raises:
            Fatal: tries or poison ran out.
            Exception: what the handler raised, unchanged.
        """
        try:
            while not stop.is_set():
                await asyncio.wait({self._pending_poll()})
                try:
                    delivery = self._take_poll()
                except Unavailable as error:
                    await self._wait_for_bus(error, stop)
                    continue
                self._polls_failed = 0
                if delivery is not None and not stop.is_set():
                    await self._process(delivery, stop)
        finally:
            if self._poll is not None:
                await _settle(self._poll)

    async def _process(self, delivery: Delivery, stop: asyncio.Event) -> None:
        where = place(delivery)
        # Pause first: every poll made while the handler runs must come back empty.
        self._subscription.pause()
        task = asyncio.create_task(self._handle_or_bury(delivery))
        try:
            finished = await self._wait(task, stop)
        finally:
            task.cancel()
            await _settle(task)
        if not finished:
            log.warning("%s: abandoned uncommitted, its handler outlasted the drain", where)
            return
        if task.cancelled():
            raise Fatal(f"{where}: the handler cancelled itself")
        task.result()
        await self._commit(delivery, where)
        if self._poison_in_a_row > self._limits.poison_in_a_row_max:
            raise Fatal(f"{where}: {self._poison_in_a_row} poison records in a row")
        self._subscription.resume()

    async def _wait(self, task: asyncio.Task[None], stop: asyncio.Event) -> bool:
        """Poll until ``task`` is done; False when the drain limit came first."""
        loop = asyncio.get_running_loop()
        deadline: float | None = None
        while not task.done():
            if stop.is_set():
                deadline = loop.time() + self._limits.drain_s if deadline is None else deadline
                if loop.time() >= deadline:
                    return False
            poll = self._pending_poll()
            await asyncio.wait({task, poll}, return_when=asyncio.FIRST_COMPLETED)
            if poll.done() and await self._idle_poll(stop) is not None:
                raise Fatal("a paused subscription delivered a record")
        return True

    async def _idle_poll(self, stop: asyncio.Event) -> Delivery | None:
        try:
            return self._take_poll()
        except Unavailable as error:
            await self._wait_for_bus(error, stop)
            return None

    async def _wait_for_bus(self, error: Unavailable, stop: asyncio.Event) -> None:
        """Pause after a failed poll, for less when told to stop meanwhile."""
        self._polls_failed += 1
        log.warning("poll %d in a row failed: %s", self._polls_failed, error)
        pause = asyncio.ensure_future(self._sleep(self._pause_s(self._polls_failed)))
        told = asyncio.ensure_future(stop.wait())
        await asyncio.wait({pause, told}, return_when=asyncio.FIRST_COMPLETED)
        for task in (pause, told):
            task.cancel()

    async def _commit(self, delivery: Delivery, where: str) -> None:
        try:
            if not await self._subscription.commit(delivery):
                log.info("%s: not committed, the partition moved to another member", where)
        except Unavailable as error:
            log.warning("%s: not committed, it will come again: %s", where, error)

    async def _handle_or_bury(self, delivery: Delivery) -> None:
        where = (delivery.topic, self._group)
        try:
            envelope = wire.decode(delivery.record)
        except Poison as error:
            await bury(self._bus, self._clock, delivery, error, attempts=1)
            metrics.RECORDS.inc(*where, "poison")
            return
        metrics.HOP_SECONDS.observe((self._clock.now_ns() - envelope.time_ns) / SECOND_NS, *where)
        began_ns = self._clock.monotonic_ns()
        names = envelopes.names(envelope.event)
        with logs.about(event=type(envelope.event).__name__, event_id=envelope.id, **names):
            outcome = await self._handle_until_done(delivery, envelope)
        metrics.HANDLER_SECONDS.observe((self._clock.monotonic_ns() - began_ns) / SECOND_NS, *where)
        metrics.RECORDS.inc(*where, outcome)

    async def _handle_until_done(self, delivery: Delivery, envelope: Envelope) -> str:
        """Tries until one succeeds or shows the record to be poison, and buries it then. Returns which it was."""
        tries = 1
        try:
            while not await self._try(envelope, tries):
                metrics.RECORDS.inc(delivery.topic, self._group, "retried")
                await self._sleep(self._pause_s(tries))
                tries += 1
        except Poison as error:
            await bury(self._bus, self._clock, delivery, error, attempts=tries)
            self._poison_in_a_row += 1
            return "poison"
        self._poison_in_a_row = 0
        return "handled"

    async def _try(self, envelope: Envelope, tries: int) -> bool:
        """False when another try is due."""
        try:
            with tracing.handling(envelope, type(envelope.event).__name__):
                await self._handler(envelope)
        except Unavailable as error:
            log.warning("%s: try %d: waiting for %s", envelope.subject, tries, error)
            return False
        except Retryable as error:
            if tries >= self._limits.attempts_max:
                raise Fatal(f"{envelope.subject}: gave up after {tries} tries: {error}") from error
            log.info("%s: try %d failed: %s", envelope.subject, tries, error)
            return False
        return True

    def _pause_s(self, tries: int) -> float:
        """Full jitter: uniform up to a doubling, capped bound, so that members do not retry in step."""
        bound = min(self._limits.backoff_max_s, self._limits.backoff_s * 2.0 ** (tries - 1))
        return self._jitter.uniform(0.0, bound)

    def _pending_poll(self) -> asyncio.Task[Delivery | None]:
        """The poll in progress; at most one, because a poll outlives the wait for a handler."""
        if self._poll is None:
            self._poll = asyncio.create_task(self._subscription.poll(self._limits.poll_wait_s))
        return self._poll

    def _take_poll(self) -> Delivery | None:
        poll, self._poll = self._pending_poll(), None
        return poll.result()


async def _settle(task: asyncio.Task[object]) -> None:
    """Wait for ``task`` and look at its error, which somebody else reports or which no longer matters."""
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
