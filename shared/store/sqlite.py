"""The store in one SQLite file; the only file of ``shared`` that imports ``sqlite3``.

Write-ahead log with ``synchronous=NORMAL``: a commit is in the operating system's hands before the call returns, so
killing the process loses nothing; a power cut may lose the last commits but never breaks the file or leaves a gap
(https://www.sqlite.org/pragma.html#pragma_synchronous). Every call runs in one thread of its own, so the event loop
never waits for the disk, and calls are carried out in the order they were made.

Two processes may open one file: the journal's expected sequence number is the fence between them.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

from google.protobuf.message import DecodeError

from protos.events.v1 import envelope_pb2
from shared import ids
from shared.errors import Conflict, Fatal, LogError
from shared.store import JournalEntry, sql

T = TypeVar("T")

BUSY_S = 10.0
"""How long a call waits for another process's write."""
PAGE_ROWS = 256
"""Rows fetched per visit to the database's thread."""


class _Database:
    """A connection and the thread it lives in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite")
        self._connection: sqlite3.Connection | None = None

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` in the database's thread.

        Raises:
            Fatal: closed, full, locked for too long or unreadable.
            LogError: the file's content is damaged.
        """
        if self._connection is None:
            raise Fatal(f"{self.path} is closed")
        connection = self._connection
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, work, connection)
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            raise Fatal(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self.damaged(error) from error

    def damaged(self, what: object) -> LogError:
        """The error to raise when the file's content makes no sense."""
        return LogError(f"is damaged: {_one_line(what)}", where=str(self.path))

    async def open(self) -> None:
        """Create or check the file. Raises ``LogError`` when it is not ours or cannot be used."""
        loop = asyncio.get_running_loop()
        try:
            self._connection = await loop.run_in_executor(self._thread, _connect, self.path)
        except (
            sqlite3.DatabaseError,
            OSError,
            UnicodeDecodeError,
        ) as error:  # SQLite quotes damaged schemas as they are
            raise LogError(f"cannot be opened as a store: {_one_line(error)}", where=str(self.path)) from error

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, connection.close)
        self._thread.shutdown()


def _one_line(what: object) -> str:
    return " ".join(str(what).split())


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    # A damaged character must not hide the rest of its row: whoever checks the digest finds it.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if tables and (owner, version) != (sql.APPLICATION_ID, sql.FORMAT):
        raise LogError(f"is not a store of format {sql.FORMAT}", where=str(path), hint="choose another path")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if not tables:
        connection.executescript(sql.SCHEMA)


class SqliteJournal:
    """See ``shared.store.Journal``."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    async def append(self, stream: str, entry: JournalEntry) -> None:
        commands = envelope_pb2.JournalCommands(envelopes=entry.commands).SerializeToString()
        row = {
            "stream": stream,
            "seq": entry.seq,
            "event_id": entry.event_id,
            "event": entry.event,
            "commands": commands,
            "sent": int(entry.sent),
            "digest": entry.digest,
        }
        try:
            written = await self._database.call(lambda connection: connection.execute(sql.APPEND, row).rowcount)
        except sqlite3.IntegrityError as error:
            raise Conflict(f"{stream}: event {entry.event_id} is journalled already ({error})") from error
        if not written:
            raise Conflict(f"{stream}: entry {entry.seq} is not the next one of the stream")

    async def read(self, stream: str, start: int = 0) -> AsyncIterator[JournalEntry]:
        position = start
        while rows := await self._rows(sql.READ, (stream, position, PAGE_ROWS)):
            for row in rows:
                yield self._entry(*row)
            position = rows[-1][0] + 1

    async def mark_sent(self, stream: str, seq: int) -> None:
        update = "UPDATE journal SET sent = 1 WHERE stream = ? AND seq = ?"
        if not await self._database.call(lambda connection: connection.execute(update, (stream, seq)).rowcount):
            raise KeyError((stream, seq))

    async def streams(self) -> Sequence[str]:
        return [row[0] for row in await self._rows("SELECT DISTINCT stream FROM journal ORDER BY stream", ())]

    async def _rows(self, query: str, values: tuple[object, ...]) -> list[Any]:
        return await self._database.call(lambda connection: connection.execute(query, values).fetchall())

    def _entry(self, seq: int, event_id: str, event: bytes, commands: bytes, sent: int, digest: str) -> JournalEntry:
        kinds = (int, str, bytes, bytes, int, str)
        if not all(map(isinstance, (seq, event_id, event, commands, sent, digest), kinds)):
            raise self._database.damaged(f"entry {seq} has columns of other types")
        try:
            envelopes = envelope_pb2.JournalCommands.FromString(commands).envelopes
        except DecodeError as error:
            raise self._database.damaged(f"the commands of entry {seq} do not parse") from error
        return JournalEntry(
            seq=seq, event_id=event_id, event=event, commands=tuple(envelopes), sent=bool(sent), digest=digest
        )


class SqliteDocuments:
    """See ``shared.store.Documents``."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    async def put(self, collection: str, key: str, value: Mapping[str, object]) -> None:
        row = (collection, key, json.dumps(dict(value), allow_nan=False))
        await self._database.call(lambda connection: connection.execute(sql.PUT_DOCUMENT, row))

    async def create(self, collection: str, key: str, value: Mapping[str, object]) -> dict[str, object] | None:
        row = (collection, key, json.dumps(dict(value), allow_nan=False))
        if await self._database.call(lambda connection: connection.execute(sql.CREATE_DOCUMENT, row).rowcount):
            return None
        return await self.get(collection, key)

    async def get(self, collection: str, key: str) -> dict[str, object] | None:
        query = "SELECT value FROM document WHERE collection = ? AND key = ?"
        row = await self._database.call(lambda connection: connection.execute(query, (collection, key)).fetchone())
        return None if row is None else self._parsed(key, row[0])

    async def delete(self, collection: str, key: str) -> None:
        query = "DELETE FROM document WHERE collection = ? AND key = ?"
        await self._database.call(lambda connection: connection.execute(query, (collection, key)))

    async def scan(
        self, collection: str, prefix: str = "", after: str = ""
    ) -> AsyncIterator[tuple[str, dict[str, object]]]:
        position = max(prefix, after + "\x00") if after else prefix  # the smallest key after it
        while True:
            rows = await self._page(collection, position)
            for key, value in rows:
                document = self._parsed(key, value)
                if not key.startswith(prefix):
                    return
                yield key, document
            if len(rows) < PAGE_ROWS:
                return
            position = rows[-1][0] + "\x00"  # the smallest key after it

    def _parsed(self, key: str, text: str) -> dict[str, object]:
        if not isinstance(key, str):
            raise self._database.damaged(f"document {key!r} has a key of another type")
        try:
            return dict(json.loads(text))
        except (TypeError, ValueError) as error:
            raise self._database.damaged(f"document {key!r} does not parse") from error

    async def _page(self, collection: str, position: str) -> list[Any]:
        page = (collection, position, PAGE_ROWS)
        return await self._database.call(lambda connection: connection.execute(sql.SCAN, page).fetchall())


class SqliteBlobs:
    """See ``shared.store.Blobs``."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    async def put(self, data: bytes) -> str:
        digest = ids.content_hash(data)
        query = "INSERT INTO blob (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING"
        await self._database.call(lambda connection: connection.execute(query, (digest, data)))
        return digest

    async def get(self, digest: str) -> bytes:
        query = "SELECT data FROM blob WHERE digest = ?"
        row = await self._database.call(lambda connection: connection.execute(query, (digest,)).fetchone())
        if row is None:
            raise KeyError(digest)
        data = row[0]
        if not isinstance(data, bytes) or ids.content_hash(data) != digest:
            raise Fatal(f"{self._database.path}: blob {digest} does not match its name")
        return data


class SqliteStore:
    """See ``shared.store.Store``. Opening creates the file and its folder.

    Raises:
        LogError: on opening, when the path is not a store of this format or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._database = _Database(path)
        self.journal = SqliteJournal(self._database)
        self.documents = SqliteDocuments(self._database)
        self.blobs = SqliteBlobs(self._database)

    async def __aenter__(self) -> Self:
        await self._database.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._database.close()

    async def ping(self) -> None:
        await self._database.call(lambda connection: connection.execute("SELECT 1").fetchone())
