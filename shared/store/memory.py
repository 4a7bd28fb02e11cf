"""The store in dictionaries: for tests and throw-away runs. Dies with its process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

from shared import ids
from shared.errors import Conflict, Fatal
from shared.store import JournalEntry


class MemoryJournal:
    """See ``shared.store.Journal``."""

    def __init__(self) -> None:
        self._streams: dict[str, list[JournalEntry]] = {}
        self._event_ids: dict[str, set[str]] = {}

    async def append(self, stream: str, entry: JournalEntry) -> None:
        entries = self._streams.get(stream, [])
        if entry.seq != len(entries):
            raise Conflict(f"{stream}: entry {entry.seq} appended to a stream of {len(entries)}")
        event_ids = self._event_ids.setdefault(stream, set())
        if entry.event_id in event_ids:
            raise Conflict(f"{stream}: event {entry.event_id} is journalled already")
        event_ids.add(entry.event_id)
        self._streams.setdefault(stream, entries).append(entry)

    async def read(self, stream: str, start: int = 0) -> AsyncIterator[JournalEntry]:
        for entry in self._streams.get(stream, [])[start:]:
            yield entry

    async def mark_sent(self, stream: str, seq: int) -> None:
        entries = self._streams.get(stream, [])
        if not 0 <= seq < len(entries):
            raise KeyError((stream, seq))
        entries[seq] = replace(entries[seq], sent=True)

    async def streams(self) -> Sequence[str]:
        return sorted(self._streams)


class MemoryDocuments:
    """See ``shared.store.Documents``. Values are kept as JSON text, so that no caller shares them."""

    def __init__(self) -> None:
        self._collections: dict[str, dict[str, str]] = {}

    async def put(self, collection: str, key: str, value: Mapping[str, object]) -> None:
        self._collections.setdefault(collection, {})[key] = json.dumps(dict(value), allow_nan=False)

    async def create(self, collection: str, key: str, value: Mapping[str, object]) -> dict[str, object] | None:
        standing = await self.get(collection, key)
        if standing is None:
            await self.put(collection, key, value)
        return standing

    async def get(self, collection: str, key: str) -> dict[str, object] | None:
        text = self._collections.get(collection, {}).get(key)
        return None if text is None else dict(json.loads(text))

    async def delete(self, collection: str, key: str) -> None:
        self._collections.get(collection, {}).pop(key, None)

    async def scan(
        self, collection: str, prefix: str = "", after: str = ""
    ) -> AsyncIterator[tuple[str, dict[str, object]]]:
        for key, text in sorted(self._collections.get(collection, {}).items()):
            if key.startswith(prefix) and (key > after or not after):
                yield key, json.loads(text)


class MemoryBlobs:
    """See ``shared.store.Blobs``."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        digest = ids.content_hash(data)
        self._blobs.setdefault(digest, bytes(data))
        return digest

    async def get(self, digest: str) -> bytes:
        data = self._blobs[digest]
        if ids.content_hash(data) != digest:
            raise Fatal(f"blob {digest} does not match its name")
        return data


class MemoryStore:
    """See ``shared.store.Store``."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.documents = MemoryDocuments()
        self.blobs = MemoryBlobs()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing to close: the content stays for whoever holds the object."""

    async def ping(self) -> None:
        """Always there."""
