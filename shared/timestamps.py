"""Wall time in nanoseconds as RFC 3339 text with nine decimals, and back without loss (pure)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORM = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)", re.ASCII)


def to_text(time_ns: int) -> str:
    """``2026-01-31T23:59:59.000000001Z``. Raises ``OverflowError`` beyond the year 9999."""
    seconds, rest = divmod(time_ns, SECOND_NS)
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def from_text(text: str) -> int:
    """Nanoseconds since the epoch. Raises ``ValueError`` for anything but UTC in RFC 3339, or before 1970."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time in UTC")
    moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    if whole < 0:
        raise ValueError(f"{text!r} is before 1970")
    return whole * SECOND_NS + int((match[2] or "").ljust(9, "0"))
