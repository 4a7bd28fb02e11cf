"""What a bus publishes with: a producer that is started when first needed, and replaced when it failed."""

from __future__ import annotations

import asyncio
import logging

from shared.bus import Record
from shared.bus.kafka_connection import Connection
from shared.bus.kafka_driver import IdempotenceRefused, Producer, attempt
from shared.bus.kafka_topics import DEAD_LETTER_FACTOR
from shared.clock import SystemClock
from shared.errors import Unavailable

log = logging.getLogger(__name__)


class Publisher:
    """Idempotent where the broker supports it, so that its own retries neither duplicate nor reorder."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._settings = connection, connection.settings
        self._clock = SystemClock()
        self._producer: Producer | None = None
        self._turn = asyncio.Lock()
        self._idempotent = True

    @property
    def idempotent(self) -> bool:
        """Whether the producer in use is one whose retries duplicate nothing."""
        return self._producer is not None and self._producer.has_id

    async def send(self, topic: str, record: Record) -> None:
        """Raises ``Unavailable``, ``Poison`` or ``Fatal``."""
        producer: Producer | None = None
        try:
            async with attempt(f"publish to {topic}", self._settings.publish_timeout_ms):
                producer = await self._started()
                await producer.send(topic, record, self._clock.now_ns())
        except Unavailable:
            self._drop(producer)
            raise

    async def close(self) -> None:
        """After the start in progress; nobody starts another once the connection is closed."""
        async with self._turn:
            producer, self._producer = self._producer, None
        if producer is not None:
            await producer.abandon()

    async def _started(self) -> Producer:
        async with self._turn:
            self._connection.check_open()
            if self._producer is None:
                self._producer = await self._start()
            return self._producer

    async def _start(self) -> Producer:
        if self._idempotent:
            producer = self._make(idempotent=True)
            try:
                await producer.start()
            except IdempotenceRefused as error:
                log.info("the broker refuses an idempotent producer (%s): its retries may duplicate records", error)
                self._idempotent = False
            else:
                return producer
        producer = self._make(idempotent=False)
        await producer.start()
        return producer

    def _make(self, *, idempotent: bool) -> Producer:
        return Producer(
            self._connection.cluster,
            self._settings,
            request_bytes_max=self._settings.record_bytes_max * DEAD_LETTER_FACTOR,
            idempotent=idempotent,
        )

    def _drop(self, producer: Producer | None) -> None:
        """Forget a producer and what it still holds, so that an outage does not pile up batches."""
        if producer is not None and producer is self._producer:
            self._producer = None
            self._connection.farewells.part(producer.abandon())
