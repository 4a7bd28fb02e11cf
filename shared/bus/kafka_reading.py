"""Taking records from a consumer, past those that the driver cannot decode."""

from __future__ import annotations

import logging

from shared.bus import Delivery, Record
from shared.bus.kafka_driver import TopicConsumer, Unreadable
from shared.errors import Fatal, Unavailable

log = logging.getLogger(__name__)

REFETCH_MS = 5_000
"""How long what has been fetched once may take to come again."""


async def take(consumer: TopicConsumer, wait_ms: int) -> list[Delivery]:
    """What has arrived, or arrives within ``wait_ms``.

    A record that the driver cannot decode (a header's name is not UTF-8) comes empty, with a header ``unreadable``.
    """
    try:
        return await consumer.take(wait_ms)
    except Unreadable as error:
        rebalances = consumer.rebalances
        found = await _around_unreadable(consumer, error)
        if consumer.rebalances != rebalances:  # what was taken first may be another member's by now
            raise Unavailable(f"{consumer.topic}: a rebalance came between") from error
        return found


async def _around_unreadable(consumer: TopicConsumer, error: Unreadable) -> list[Delivery]:
    """The driver does not say which record it is, and would stumble over it for ever: partition by partition, and then
    one by one, it is looked for.
    """
    found: list[Delivery] = []
    silent = False
    for number in consumer.assigned:
        if await consumer.position(number) >= (consumer.highwater(number) or 0):
            continue
        try:
            some = await consumer.take(REFETCH_MS, only=number)
        except Unreadable:
            return found + await _one_by_one(consumer, number)
        silent = silent or not some
        found.extend(some)
    if found:  # and the culprit comes with the next ones
        return found
    if silent:
        raise Unavailable(f"{consumer.topic}: what was fetched does not come again")
    raise Fatal(f"{consumer.topic}: the driver failed and no record is to blame: {error}") from error


async def _one_by_one(consumer: TopicConsumer, number: int) -> list[Delivery]:
    """Up to the first record that cannot be decoded, and what stands for it."""
    found: list[Delivery] = []
    while True:
        offset = await consumer.position(number)
        try:
            one = await consumer.take(REFETCH_MS, only=number, most=1)
        except Unreadable as reason:
            log.error("%s[%d]@%d cannot be read: %s", consumer.topic, number, offset, reason)  # noqa: TRY400
            consumer.seek(number, offset + 1)
            return [*found, _stand_in(consumer.topic, number, offset, str(reason))]
        if not one:
            raise Unavailable(f"{consumer.topic}[{number}]@{offset}: what was fetched does not come again")
        found.extend(one)


def _stand_in(topic: str, number: int, offset: int, reason: str) -> Delivery:
    record = Record(key="", value=b"", headers={"unreadable": reason.encode()})
    return Delivery(topic=topic, partition=number, offset=offset, record=record)
