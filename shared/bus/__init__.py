"""The bus port: Kafka's contract, whatever carries it.

``shared.adapters.open_bus(url)`` chooses the adapter: ``memory:`` (this process) or ``kafka://host:port``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Bytes on a topic. ``headers`` survive byte for byte.

    A cluster can hold what strangers wrote, and it is delivered so that it can end as a dead letter: a key that is not
    UTF-8 comes with surrogates for its bytes and goes out as it came; a missing key, value or header value comes empty;
    of headers with one name the last counts. What a driver cannot read at all comes empty with a header ``unreadable``.
    """

    key: str
    value: bytes
    headers: Mapping[str, bytes]


def key_bytes(key: str) -> bytes:
    """What stands for ``key`` on the wire."""
    return key.encode(errors="surrogateescape")


def key_text(key: bytes) -> str:
    """The inverse of ``key_bytes``, for any bytes."""
    return key.decode(errors="surrogateescape")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A record as received, with the position that ``commit`` needs."""

    topic: str
    partition: int
    offset: int
    record: Record
    published_ns: int = 0
    """When it was given to the bus, by the publisher's wall clock, to a millisecond; 0 is unknown."""


class Subscription(Protocol):
    """A member of a consumer group on one topic; an async context manager.

    Order is kept per key. What was delivered and not committed is delivered again after the subscription is reopened.
    At most one member of a group owns a partition. ``pause`` delivers nothing and loses nothing.
    """

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    async def poll(self, wait_s: float) -> Delivery | None:
        """Next record, or None after ``wait_s``; 0 asks for what has arrived: a cluster's news take a moment.

        Keep polling while paused: that is what keeps the member alive. Never cancel a poll: it may take the record, or
        the driver's sense of being alive, with it.
        """
        ...

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    async def commit(self, delivery: Delivery) -> bool:
        """Commit ``delivery.offset + 1`` on its partition only.

        False, and nothing is committed, when the partition belongs to another member by now, or the group has gone
        past the record while it did: whoever owns it then sees the record again, and dedupe by event id makes that
        harmless. What was committed never moves back.
        """
        ...

    def lag(self) -> int:
        """Records on the partitions owned now that the group has not committed, as far as this member has heard."""
        ...


class Bus(Protocol):
    """Publish and subscribe; an async context manager.

    ``publish`` returns once the record is durable as far as the adapter goes; publishing the same event twice is
    allowed and consumers dedupe by event id. Raises ``Fatal`` after close, and ``Poison`` for a record that is larger
    than the bus takes.

    Every call but ``subscribe`` raises ``Unavailable`` while the broker cannot be reached; the same call works again
    once it can.
    """

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    async def publish(self, topic: str, record: Record) -> None: ...
    def subscribe(self, topic: str, group: str) -> Subscription: ...
    def history(self, topic: str, key: str | None = None) -> AsyncIterator[Delivery]:
        """What the topic holds under ``key`` (None: all of it) at the time of the call, oldest first per partition.

        Belongs to no group and moves nobody's position. What retention took is not there.
        """
        ...

    async def ping(self) -> None:
        """Raises ``Unavailable`` unless the broker answers."""
        ...
