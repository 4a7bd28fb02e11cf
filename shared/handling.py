"""One record in a consumer's hands: decode, try, retry, bury.

- A record that cannot be decoded, or whose handler says ``Poison``, goes to the dead-letter topic with its bytes
  unchanged and counts as done. Too many in a row that decode and are refused mean that the reader is wrong, not the
  records: that is ``Fatal``. Garbage stops nothing: anybody can write it, and a dead letter can be redriven. What is
  ``Stranded`` stops nothing either.
- ``Retryable`` is tried again in place after a capped, jittered pause; out of tries it is ``Fatal``. ``Unavailable`` is
  tried for as long as it takes.
- Anything else the handler raises goes up unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared import envelopes, logs, metrics, tracing, wire
from shared.burial import bury, place
from shared.bus import Bus, Delivery
from shared.clock import SECOND_NS, Clock
from shared.errors import Fatal, Poison, Retryable, Stranded, Unavailable
from shared.events import Envelope

Handler = Callable[[Envelope], Awaitable[None]]
Sleep = Callable[[float], Awaitable[object]]

OUTCOMES = ("handled", "poison", "retried")
"""What a record or a try can end as, in ``metrics.RECORDS``."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How often, and with what pauses, a record is tried."""

    attempts_max: int
    backoff_s: float
    backoff_max_s: float
    poison_in_a_row_max: int


class Handling:
    """Takes records through ``handler``. ``group`` names the consumer in metrics and dead letters."""

    def __init__(
        self,
        *,
        bus: Bus,
        handler: Handler,
        clock: Clock,
        group: str,
        tries: Tries,
        sleep: Sleep = asyncio.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        self._bus, self._handler, self._clock, self._group = bus, handler, clock, group
        self._tries, self._sleep = tries, sleep
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, decides nothing
        self._poison_in_a_row = 0

    async def handle(self, delivery: Delivery) -> None:
        """Done with ``delivery`` when it returns.

        Raises:
            Fatal: tries ran out.
            Exception: what the handler raised, unchanged.
        """
        where = (delivery.topic, self._group)
        try:
            envelope = wire.decode(delivery.record)
        except Poison as error:
            await bury(self._bus, self._clock, delivery, error, group=self._group, attempts=1)
            metrics.RECORDS.inc(*where, "poison")
            return
        waited_ns = self._clock.now_ns() - (delivery.published_ns or envelope.time_ns)
        metrics.HOP_SECONDS.observe(max(0, waited_ns) / SECOND_NS, *where)
        began_ns = self._clock.monotonic_ns()
        names = envelopes.names(envelope.event)
        with logs.about(event=type(envelope.event).__name__, event_id=envelope.id, **names):
            outcome = await self._until_done(delivery, envelope)
        metrics.HANDLER_SECONDS.observe((self._clock.monotonic_ns() - began_ns) / SECOND_NS, *where)
        metrics.RECORDS.inc(*where, outcome)

    def check(self, delivery: Delivery) -> None:
        """Called once ``delivery`` is committed. Raises ``Fatal`` when too many refusals in a row end with it."""
        if self._poison_in_a_row > self._tries.poison_in_a_row_max:
            raise Fatal(f"{place(delivery)}: {self._poison_in_a_row} poison records in a row")

    def pause_s(self, tries: int) -> float:
        """Full jitter: uniform up to a doubling, capped bound, so that members do not retry in step."""
        bound = min(self._tries.backoff_max_s, self._tries.backoff_s * 2.0 ** (tries - 1))
        return self._jitter.uniform(0.0, bound)

    async def _until_done(self, delivery: Delivery, envelope: Envelope) -> str:
        """Tries until one succeeds or shows the record to be poison, and buries it then. Returns which it was."""
        tries = 1
        try:
            while not await self._try(envelope, tries):
                metrics.RECORDS.inc(delivery.topic, self._group, "retried")
                await self._sleep(self.pause_s(tries))
                tries += 1
        except Poison as error:
            await bury(self._bus, self._clock, delivery, error, group=self._group, attempts=tries)
            if not isinstance(error, Stranded):
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
            if tries >= self._tries.attempts_max:
                raise Fatal(f"{envelope.subject}: gave up after {tries} tries: {error}") from error
            log.info("%s: try %d failed: %s", envelope.subject, tries, error)
            return False
        return True
