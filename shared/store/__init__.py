"""The store ports: journal, documents and blobs.

``shared.adapters.open_store(url)`` chooses the adapter: ``memory:``, ``sqlite:PATH`` or ``mongodb://…``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One consumed input and what was decided, written in one write.

    ``event`` and ``commands`` are encoded records (``shared.wire``); ``sent`` turns true once all commands are out.
    ``digest`` chains the entry to the one before it (``search_svc.chain``), so that an entry altered after it was
    written is found by reading; adapters store it as given.
    """

    seq: int
    event_id: str
    event: bytes
    commands: tuple[bytes, ...]
    sent: bool = False
    digest: str = ""


class Journal(Protocol):
    """Append-only streams with an expected sequence number: the fence between two owners of a search."""

    async def append(self, stream: str, entry: JournalEntry) -> None:
        """Append ``entry``; its ``seq`` must be the stream's length.

        Raises ``Conflict`` when the stream is longer or shorter, or already holds ``event_id``.
        """
        ...

    def read(self, stream: str, start: int = 0) -> AsyncIterator[JournalEntry]:
        """Entries from ``start`` in order."""
        ...

    async def mark_sent(self, stream: str, seq: int) -> None:
        """Idempotent. Raises ``KeyError`` for an entry that does not exist."""
        ...

    async def streams(self) -> Sequence[str]:
        """Names of all streams, sorted."""
        ...


class Documents(Protocol):
    """Small JSON documents in named collections; single-document atomicity, no more.

    Values are JSON-able. ``put`` replaces the document whole.
    """

    async def create(self, collection: str, key: str, value: Mapping[str, object]) -> dict[str, object] | None:
        """Put ``value`` unless there is a document under ``key``: of several callers exactly one puts.

        None when it was put; the document that was there before otherwise, which stays as it is.
        """
        ...

    async def put(self, collection: str, key: str, value: Mapping[str, object]) -> None: ...
    async def get(self, collection: str, key: str) -> dict[str, object] | None: ...
    async def delete(self, collection: str, key: str) -> None: ...
    def scan(self, collection: str, prefix: str = "", after: str = "") -> AsyncIterator[tuple[str, dict[str, object]]]:
        """``(key, value)`` in key order (by code point): keys that begin with ``prefix`` and come after ``after``."""
        ...


class Blobs(Protocol):
    """Immutable bytes by content hash. Putting the same bytes twice stores them once."""

    async def put(self, data: bytes) -> str:
        """Store and return ``ids.content_hash(data)``."""
        ...

    async def get(self, digest: str) -> bytes:
        """Raises ``KeyError`` when unknown and ``Fatal`` when the stored bytes no longer match their name."""
        ...


class Store(Protocol):
    """One back end, three ports; an async context manager.

    Every call raises ``Unavailable`` while the back end cannot be reached; whether the call took effect is then
    unknown, and made again it has the effect once. Raises ``Fatal`` after close.
    """

    @property
    def journal(self) -> Journal: ...
    @property
    def documents(self) -> Documents: ...
    @property
    def blobs(self) -> Blobs: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    async def ping(self) -> None:
        """Raises ``Unavailable`` unless the back end answers."""
        ...
