"""The record a poisoned one becomes on its dead-letter topic (pure).

Key, value and headers are unchanged, so that a redrive is a copy back and dedupe by event id still holds; where it was
and why it failed are headers of their own.
"""

from __future__ import annotations

from shared import timestamps
from shared.bus import Delivery, Record


def record(delivery: Delivery, error: str, *, attempts: int, at_ns: int) -> Record:
    """``delivery``'s record with ``dlq_*`` headers, all UTF-8 text; ``at_ns`` is when it failed first."""
    headers = {
        "dlq_topic": delivery.topic,
        "dlq_partition": str(delivery.partition),
        "dlq_offset": str(delivery.offset),
        "dlq_error": error,
        "dlq_attempts": str(attempts),
        "dlq_first_failed_at": timestamps.to_text(at_ns),
    }
    why = {name: value.encode(errors="backslashreplace") for name, value in headers.items()}
    original = delivery.record
    return Record(key=original.key, value=original.value, headers={**original.headers, **why})
