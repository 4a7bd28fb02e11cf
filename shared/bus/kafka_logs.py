"""What the Kafka driver logs, less its repetitions."""

from __future__ import annotations

import logging

LOGGERS = (
    "aiokafka",
    "aiokafka.conn",
    "aiokafka.cluster",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.sender",
)
"""A filter holds for a logger's own records only, so each needs it."""
REPEATED_S = 10.0


class Seldom(logging.Filter):
    """Lets one kind of message through every ``REPEATED_S``: during an outage the driver repeats itself ten times a
    second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        last_s = self._last_s.get(str(record.msg))
        if last_s is not None and record.created - last_s < REPEATED_S:
            return False
        self._last_s[str(record.msg)] = record.created
        return True


def install() -> None:
    """For the whole process."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(Seldom())
