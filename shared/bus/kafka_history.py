"""Reading what a topic holds, for no group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from shared.bus import Delivery
from shared.bus.kafka_connection import Connection
from shared.bus.kafka_driver import TopicConsumer, attempt, driver_errors
from shared.bus.kafka_reading import take
from shared.errors import Unavailable

WAIT_MS = 50
"""How long one request waits: the end of a topic is seen as the silence after it, once."""


async def read(connection: Connection, topic: str, numbers: list[int]) -> AsyncIterator[Delivery]:
    """The records of these partitions up to where each ends when it is first heard of. Raises ``Unavailable``."""
    settings = connection.settings
    consumer = connection.consumer(topic, fetch_max_wait_ms=min(WAIT_MS, settings.fetch_max_wait_ms))
    consumer.assign(numbers)
    what = f"history of {topic}"
    loop = asyncio.get_running_loop()
    ends: dict[int, int] = {}
    try:
        async with attempt(what, settings.request_timeout_ms):
            await consumer.start()
        quiet_since_s = loop.time()
        while True:
            async with attempt(what, settings.publish_timeout_ms):
                if len(ends) == len(numbers) and await _has_read(consumer, ends):
                    return
            connection.check_open()
            with driver_errors(what):
                found = await take(consumer, WAIT_MS)
            _hear(consumer, ends, numbers)
            quiet_since_s = loop.time() if found else quiet_since_s
            if loop.time() - quiet_since_s > settings.publish_timeout_ms / 1000:
                raise Unavailable(f"{what}: no answer")
            for delivery in found:
                if delivery.offset < ends[delivery.partition]:
                    yield delivery
    finally:
        await asyncio.wait({connection.farewells.part(consumer.stop())})


async def _has_read(consumer: TopicConsumer, ends: dict[int, int]) -> bool:
    return all([await consumer.position(number) >= end for number, end in ends.items()])


def _hear(consumer: TopicConsumer, ends: dict[int, int], numbers: list[int]) -> None:
    for number in numbers:
        highwater = consumer.highwater(number)
        if highwater is not None:
            ends.setdefault(number, highwater)
