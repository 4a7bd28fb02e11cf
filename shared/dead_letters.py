"""The record a poisoned one becomes on its dead-letter topic, and back (pure).

Key, value and headers are unchanged, so that a redrive is a copy back and dedupe by event id still holds; where it was
and why it failed are headers of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared import ids, timestamps, topics
from shared.bus import Delivery, Record

PREFIX = "dlq_"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be handled, and why."""

    letter_id: str
    """``<dead-letter topic>/<partition>/<offset>``: where it lies now."""
    topic: str
    """Where it came from, with ``partition`` and ``offset`` there."""
    partition: int
    offset: int
    group: str
    """Who could not handle it: another group's letter of the same record is another letter."""
    error: str
    attempts: int
    first_failed_ns: int
    original: Record

    @property
    def fingerprint(self) -> str:
        """What tells it from another letter that lies in the same place after a broker began anew."""
        value = ids.content_hash(self.original.value)
        return ids.derive(self.topic, self.partition, self.offset, self.first_failed_ns, value)


def record(delivery: Delivery, error: str, *, group: str, attempts: int, at_ns: int) -> Record:
    """``delivery``'s record with ``dlq_*`` headers, all UTF-8 text; ``at_ns`` is when it failed first."""
    headers = {
        "dlq_topic": delivery.topic,
        "dlq_partition": str(delivery.partition),
        "dlq_offset": str(delivery.offset),
        "dlq_group": group,
        "dlq_error": error,
        "dlq_attempts": str(attempts),
        "dlq_first_failed_at": timestamps.to_text(at_ns),
    }
    why = {name: value.encode(errors="backslashreplace") for name, value in headers.items()}
    original = delivery.record
    return Record(key=original.key, value=original.value, headers={**original.headers, **why})


def read(delivery: Delivery) -> DeadLetter:
    """The letter that lies at ``delivery``. What somebody else wrote there reads as one that says nothing of itself."""
    headers = delivery.record.headers

    def text(name: str) -> str:
        return headers.get(f"{PREFIX}{name}", b"").decode(errors="replace")

    return DeadLetter(
        letter_id=f"{delivery.topic}/{delivery.partition}/{delivery.offset}",
        topic=delivery.topic.removesuffix(topics.DEAD_LETTER_SUFFIX),
        partition=_number(text("partition")),
        offset=_number(text("offset")),
        group=text("group"),
        error=text("error"),
        attempts=_number(text("attempts")),
        first_failed_ns=_time(text("first_failed_at")),
        original=Record(
            key=delivery.record.key,
            value=delivery.record.value,
            headers={name: value for name, value in headers.items() if not name.startswith(PREFIX)},
        ),
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _time(text: str) -> int:
    try:
        return timestamps.from_text(text)
    except ValueError:
        return 0
