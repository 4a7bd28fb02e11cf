"""A worker's announcements of what it can take: when it starts, every so often, when that changes, when it is gone."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket

from evaluator_svc.quarantine import Quarantine, Standing
from shared import envelopes, wire
from shared.bus import Bus
from shared.clock import Clock
from shared.errors import Retryable
from shared.events import CapacityAnnounced
from shared.events.capacity import WorkerState

PARTING_S = 2.0
"""A worker that leaves waits no longer than this for a bus that does not answer."""

log = logging.getLogger(__name__)


def worker_id() -> str:
    """A name no other worker has: host, process and chance (process ids come again, also in containers)."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


class Announcer:
    """Announces one worker. What cannot be said now is said next time."""

    def __init__(
        self, *, bus: Bus, clock: Clock, worker: str, chip: str, slots: int, every_s: float, quarantine: Quarantine
    ) -> None:
        self._bus, self._clock, self._quarantine = bus, clock, quarantine
        self._worker, self._chip, self._slots, self._every_s = worker, chip, slots, every_s
        self._said = 0

    async def run(self, stop: asyncio.Event) -> None:
        """READY, or QUARANTINED and why, now, every so often and whenever it changes; DRAINING once told to stop."""
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                self._quarantine.changed.clear()
                if self._quarantine.standing is not Standing.UNTRIED:
                    reason = self._quarantine.reason
                    await self._say(WorkerState.QUARANTINED if reason else WorkerState.READY, reason)
                changing = asyncio.create_task(self._quarantine.changed.wait())
                await asyncio.wait({stopping, changing}, timeout=self._every_s, return_when=asyncio.FIRST_COMPLETED)
                changing.cancel()
        finally:
            stopping.cancel()
        await self._part(WorkerState.DRAINING)

    async def gone(self) -> None:
        """The last word."""
        await self._part(WorkerState.GONE)

    async def _part(self, state: WorkerState) -> None:
        try:
            async with asyncio.timeout(PARTING_S):
                await self._say(state)
        except TimeoutError:
            log.warning("%s was not announced: the bus does not answer", state.value)

    async def _say(self, state: WorkerState, reason: str = "") -> None:
        self._said += 1
        fact = CapacityAnnounced(
            worker_id=self._worker,
            chip=self._chip,
            slots=self._slots,
            state=state,
            at_ns=self._clock.now_ns(),
            reason=reason,
        )
        source = f"/evaluator/{self._chip}/{self._worker}"
        letter = envelopes.envelope(fact, cause_id=self._worker, source=source, clock=self._clock, n=self._said)
        try:
            await self._bus.publish(envelopes.topic_of(fact), wire.encode(letter))
        except Retryable as error:
            log.warning("%s was not announced: %s", state.value, error)
