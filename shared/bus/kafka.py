"""The bus on a Kafka cluster: Apache Kafka 3.9 and 4, and brokers that speak its protocol.

- ``publish`` waits for every in-sync replica. The producer is idempotent where the broker supports it, so its own
  retries neither duplicate nor reorder; an ``Unavailable`` publish may still arrive, and is published again by whoever
  waits for it, with the same event id.
- Topics come from ``shared.topics``: a missing one is created before its first use, and again when a broker that keeps
  nothing has come back empty (``kafka_topics``).
- A subscription (``kafka_subscription``) is one membership after the other (``kafka_member``), with manual commits.
- One watch per bus (``kafka_connection``) tells everybody when the broker is gone.
- The driver is met in ``kafka_driver`` alone, and none of its errors leaves the adapter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Self

from shared.bus import Delivery, Record, kafka_history, key_bytes
from shared.bus.kafka_connection import Connection
from shared.bus.kafka_driver import partition_of
from shared.bus.kafka_producer import Publisher
from shared.bus.kafka_settings import Cluster, KafkaSettings
from shared.bus.kafka_subscription import KafkaSubscription
from shared.bus.kafka_topics import describe, record_bytes_max
from shared.errors import Poison, Unavailable


class KafkaBus:
    """See the module and the port."""

    def __init__(self, cluster: Cluster, settings: KafkaSettings | None = None) -> None:
        self.settings = settings or KafkaSettings()
        self._connection = Connection(cluster, self.settings)
        self._publisher = Publisher(self._connection)
        self._members: Counter[tuple[str, str]] = Counter()

    async def __aenter__(self) -> Self:
        """Opens without a broker, too: what needs one says ``Unavailable``."""
        self._connection.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._connection.farewells.part(self._publisher.close())
        await self._connection.close()

    async def publish(self, topic: str, record: Record) -> None:
        """See the port. Raises ``Fatal`` for a topic that is not in ``shared.topics``, ``Poison`` for a record above
        ``record_bytes_max``.
        """
        self._connection.check_open()
        row = describe(topic)
        limit = record_bytes_max(topic, self.settings)
        size = _size(record)
        if size > limit:
            raise Poison(f"publish to {topic}: {size:,} bytes, the limit is {limit:,}")
        self._connection.check_reachable()
        await self._connection.ensure(row)
        try:
            await self._publisher.send(topic, record)
        except Unavailable:
            self._connection.topics.doubt()
            raise

    def subscribe(self, topic: str, group: str) -> KafkaSubscription:
        """See the port. Raises ``Fatal`` when the topic is not in ``shared.topics``."""
        row = describe(topic)
        number = self._members[topic, group]
        self._members[topic, group] += 1
        instance = f"{self.settings.instance_id}.{topic}#{number}" if self.settings.instance_id else None
        return KafkaSubscription(self._connection, row, group, instance)

    async def history(self, topic: str, key: str | None = None) -> AsyncIterator[Delivery]:
        """See the port. A key is looked for on its own partition, unless the topic has other partitions than the table
        says: then its records may lie on any.
        """
        self._connection.check_open()
        row = describe(topic)
        count = await self._connection.ensure(row)
        own = key is not None and count == row.partitions
        numbers = [partition_of(key, count)] if own and key is not None else list(range(count))
        async for delivery in kafka_history.read(self._connection, topic, numbers):
            if key is None or delivery.record.key == key:
                yield delivery

    async def ping(self) -> None:
        """See the port."""
        self._connection.check_open()
        await self._connection.ping()

    async def ensure_topics(self, names: Iterable[str]) -> None:
        """Create those of ``names`` that are missing. Raises ``Unavailable``, or ``Fatal`` for an unknown name."""
        self._connection.check_open()
        await self._connection.topics.ensure([describe(name) for name in names])


def _size(record: Record) -> int:
    """Bytes of the record on the wire, but for a few of framing."""
    headers = sum(len(name.encode()) + len(value) for name, value in record.headers.items())
    return len(key_bytes(record.key)) + len(record.value) + headers
