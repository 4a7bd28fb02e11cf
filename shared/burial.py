"""Sending poison to its dead-letter topic, whoever consumes."""

from __future__ import annotations

import logging

from shared import dead_letters, topics
from shared.bus import Bus, Delivery
from shared.clock import Clock
from shared.errors import Poison
from shared.patience import patiently

log = logging.getLogger(__name__)


async def bury(bus: Bus, clock: Clock, delivery: Delivery, error: Poison, *, group: str, attempts: int) -> None:
    """Publish ``delivery``, which ``group`` could not handle, as a dead letter; waits for a bus that is gone."""
    log.warning("%s: poison: %s", place(delivery), error)
    letter = dead_letters.record(delivery, str(error), group=group, attempts=attempts, at_ns=clock.now_ns())
    topic = topics.dead_letters(delivery.topic)
    await patiently(lambda: bus.publish(topic, letter), f"publish to {topic}")


def place(delivery: Delivery) -> str:
    """Where a record is, for messages: ``topic[partition]@offset``."""
    return f"{delivery.topic}[{delivery.partition}]@{delivery.offset}"
