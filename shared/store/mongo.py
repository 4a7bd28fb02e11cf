"""The store in MongoDB 4.4 or newer; the only file that imports ``motor`` or ``pymongo``.

A replica set is needed, also when it has one member: retried writes and majority write concern exist only there, and
a server without one is refused on opening. Every write waits for the journal of a majority, and reads see what a
majority holds, so that nothing that was acknowledged, or that an entry follows upon, is ever rolled back.

Identities are ``_id`` documents, compared field by field; strings compare by their UTF-8 bytes, which is the order of
code points. Values are JSON text, so that keys with dots and dollars survive.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Self, TypeVar

from bson import MaxKey
from bson.errors import InvalidDocument
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorDatabase
from pymongo import errors
from pymongo.uri_parser import parse_uri
from tenacity import AsyncRetrying, retry_if_result, wait_fixed

from shared import ids
from shared.errors import Conflict, Fatal, KernelEvolveError, Unavailable, UserError
from shared.store import JournalEntry

T = TypeVar("T")
Record = dict[str, Any]

DATABASE = "kernelevolve"
REPLICA_SET = "rs0"
PAGE_RECORDS = 256
"""Records per query. Pages rather than one cursor: a cursor dies with its server, and when its reader is slow."""
CHUNK_BYTES = 8 * 1024 * 1024
"""A record holds at most 16 MiB; longer blobs are cut."""

TIMEOUTS = {
    "serverSelectionTimeoutMS": 5_000,  # callers wait longer by themselves; readiness should know soon
    "connectTimeoutMS": 5_000,
    "socketTimeoutMS": 20_000,  # a server that took the call and went silent; longer than wTimeoutMS
    "wTimeoutMS": 10_000,  # a majority that is away: unavailable, not stuck
    "maxPoolSize": 32,  # the driver's threads are fewer
    "waitQueueTimeoutMS": 10_000,  # default: for ever
    "heartbeatFrequencyMS": 5_000,
}
"""Options that the URL may set otherwise. Defaults of the driver wait for minutes or for ever."""
PROMISES = {
    "w": "majority",
    "journal": True,
    "readConcernLevel": "majority",
    "readPreference": "primary",
    "retryWrites": True,  # at most once each: the server recognises a write it has done
    "retryReads": True,
}
"""Options that the URL may not set otherwise: the journal's fence rests on them."""

ALREADY_INITIALIZED = 23
REFUSED = {13: "needs a user and a password that may use it", 18: "refuses the user or the password"}
"""Server errors that a person has to mend."""
NO_REPLICA_SET = 20
PASSING = frozenset(
    {6, 7, 24, 46, 50, 64, 89, 91, 100, 112, 133, 134, 189, 202, 262, 9001, 10058, 10107, 11600, 11602, 13435, 13436}
)
"""Server errors that end by themselves: unreachable hosts, timeouts, elections, shutdowns, write conflicts."""


async def initiate_replica_set(host: str, port: int, name: str = REPLICA_SET) -> None:
    """Make the server the one member of replica set ``name`` and wait until it is its primary.

    What it holds stays when that has been done before, also under another port. The client used here is closed: one
    that saw the server before the set was initiated may keep failing with "Sessions are not supported by this MongoDB
    deployment".
    """
    client: AsyncIOMotorClient[Record] = AsyncIOMotorClient(
        host=host, port=port, directConnection=True, serverSelectionTimeoutMS=30_000
    )
    try:
        member: Record = {"_id": 0, "host": f"{host}:{port}"}
        try:
            await client.admin.command("replSetInitiate", {"_id": name, "members": [member]})
        except errors.OperationFailure as error:
            if error.code != ALREADY_INITIALIZED:
                raise
            await _move_replica_set(client, member["host"])

        async def is_primary() -> bool:
            return bool((await client.admin.command("hello")).get("isWritablePrimary"))

        await AsyncRetrying(retry=retry_if_result(lambda found: not found), wait=wait_fixed(0.02))(is_primary)
    finally:
        client.close()


async def _move_replica_set(client: AsyncIOMotorClient[Record], host: str) -> None:
    """Tell the one member of a set where it is now: a server that is not in its own list of members serves nobody."""
    config = (await client.admin.command("replSetGetConfig"))["config"]
    if config["members"][0]["host"] != host:
        config["members"][0]["host"] = host
        config["version"] += 1
        await client.admin.command("replSetReconfig", config, force=True)


class _Database:
    """The connection and its errors. ``url`` is shown to people without its user and password."""

    def __init__(self, url: str) -> None:
        try:
            parsed = parse_uri(url, validate=True, warn=False)
        except (errors.PyMongoError, ValueError, OSError) as error:  # e.g. a certificate that is not there
            raise UserError(
                f"cannot be used: {_one_line(error)}", where="STORE_URL", hint="write mongodb://host:port/db"
            ) from error
        hosts = ",".join(f"{host}:{port}" for host, port in parsed["nodelist"])
        self.name = parsed["database"] or DATABASE
        self.shown = f"mongodb://{hosts}/{self.name}"
        self._url = url
        self._options: dict[str, Any] = {**_without(TIMEOUTS, parsed["options"]), **PROMISES}
        self._client: AsyncIOMotorClient[Record] | None = None

    async def open(self) -> None:
        """May be tried again after ``Unavailable``.

        Raises:
            UserError: the server refuses us, or is not (of) the replica set.
        """
        self._client = self._connected()
        try:
            await self._check()
            await self.call(lambda database: database["journal"].create_index(EVENTS, unique=True, name="events"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    async def call(self, work: Callable[[AsyncIOMotorDatabase[Record]], Awaitable[T]]) -> T:
        """Await ``work``.

        Raises:
            Unavailable: no answer, or one that says "not now".
            UserError: the server refuses us.
            Fatal: closed, or any other error.
        """
        if self._client is None:
            raise Fatal(f"{self.shown} is closed")
        try:
            return await work(self._client[self.name])
        except errors.DuplicateKeyError:
            raise
        except (errors.PyMongoError, InvalidDocument) as error:
            raise self._translated(error) from error

    def damaged(self, what: str) -> Fatal:
        return Fatal(f"{self.shown} is damaged: {what}")

    def _connected(self) -> AsyncIOMotorClient[Record]:
        try:
            return AsyncIOMotorClient(self._url, appname="kernelevolve", **self._options)
        except (errors.PyMongoError, ValueError, OSError) as error:
            raise UserError(f"cannot be used: {_one_line(error)}", where=f"STORE_URL={self.shown}") from error

    async def _check(self) -> None:
        try:
            hello = await self.call(lambda database: database.command("hello"))
        except Unavailable:
            # The driver drops servers that answer but do not belong to the replica set that the URL names.
            if self._client is not None and not self._client.delegate.topology_description.server_descriptions():
                raise self._not_a_set("is not of the replica set that the URL names") from None
            raise
        if "setName" not in hello and hello.get("msg") != "isdbgrid":
            if hello.get("isreplicaset"):
                raise Unavailable(f"{self.shown}: its replica set is not initiated yet")
            raise self._not_a_set("is not a replica set")

    def _not_a_set(self, what: str) -> UserError:
        return UserError(
            what,
            where=f"STORE_URL={self.shown}",
            hint="start mongod with --replSet and initiate it; one member will do",
        )

    def _translated(self, error: Exception) -> KernelEvolveError:
        line = f"{self.shown}: {_one_line(error)}"
        code = error.code if isinstance(error, errors.OperationFailure) else None
        if code in REFUSED:
            return UserError(REFUSED[code], where=f"STORE_URL={self.shown}")
        if code == NO_REPLICA_SET and "Transaction numbers" in line:
            return self._not_a_set("is not a replica set")
        return Unavailable(line) if _passing(error, code) else Fatal(line)


def _passing(error: Exception, code: int | None) -> bool:
    """Whether waiting may help."""
    if isinstance(error, errors.ConnectionFailure | errors.ExecutionTimeout | errors.WTimeoutError):
        return True
    if isinstance(error, errors.ConfigurationError):  # the set was not initiated when this client looked
        return "Sessions are not supported" in str(error)
    labelled = isinstance(error, errors.PyMongoError) and error.has_error_label("RetryableWriteError")
    return labelled or code in PASSING


def _without(options: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    taken = {name.lower() for name in others}
    return {name: value for name, value in options.items() if name.lower() not in taken}


def _one_line(what: object) -> str:
    return " ".join(str(what).split())[:500]


EVENTS = [("_id.stream", 1), ("event_id", 1)]
"""Index: an event is journalled once per stream."""


class MongoJournal:
    """See ``shared.store.Journal``. Entries are dense and never deleted, which is what makes ``append`` safe.

    That entry ``seq - 1`` is there is checked first; a majority holds it, so it stays. Then ``_id`` decides between
    owners: one inserts entry ``seq``, the others conflict. A try that comes late, or again because its answer was
    lost, meets its own entry and conflicts: there is never a second one and never a gap.
    """

    def __init__(self, database: _Database) -> None:
        self._database = database

    async def append(self, stream: str, entry: JournalEntry) -> None:
        if entry.seq < 0 or (entry.seq and not await self._has(stream, entry.seq - 1)):
            raise Conflict(f"{stream}: entry {entry.seq} is not the next one of the stream")
        record = {
            "_id": _position(stream, entry.seq),
            "event_id": entry.event_id,
            "event": entry.event,
            "commands": list(entry.commands),
            "sent": entry.sent,
            "digest": entry.digest,
        }
        try:
            await self._database.call(lambda database: database["journal"].insert_one(record))
        except errors.DuplicateKeyError as error:
            what = f"entry {entry.seq}" if "_id" in _violated(error) else f"event {entry.event_id}"
            raise Conflict(f"{stream}: {what} is journalled already") from error

    async def read(self, stream: str, start: int = 0) -> AsyncIterator[JournalEntry]:
        position = start
        while page := await self._page(stream, position):
            for record in page:
                yield self._entry(record)
            position = page[-1]["_id"]["seq"] + 1

    async def mark_sent(self, stream: str, seq: int) -> None:
        which, change = {"_id": _position(stream, seq)}, {"$set": {"sent": True}}
        result = await self._database.call(lambda database: database["journal"].update_one(which, change))
        if not result.matched_count:
            raise KeyError((stream, seq))

    async def streams(self) -> Sequence[str]:
        # In this form the index answers with one step per stream, whatever their lengths.
        distinct: list[Record] = [{"$sort": {"_id.stream": 1}}, {"$group": {"_id": "$_id.stream"}}]
        found = await self._database.call(lambda database: database["journal"].aggregate(distinct).to_list(None))
        return sorted(record["_id"] for record in found)

    async def _has(self, stream: str, seq: int) -> bool:
        which = {"_id": _position(stream, seq)}
        return await self._database.call(lambda database: database["journal"].find_one(which, {"_id": 1})) is not None

    async def _page(self, stream: str, start: int) -> list[Record]:
        return await _listed(self._database, "journal", _position(stream, start), _position(stream, MaxKey()))

    def _entry(self, record: Record) -> JournalEntry:
        try:
            return JournalEntry(
                seq=int(record["_id"]["seq"]),
                event_id=record["event_id"],
                event=bytes(record["event"]),
                commands=tuple(map(bytes, record["commands"])),
                sent=bool(record["sent"]),
                digest=record["digest"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise self._database.damaged(f"entry {record.get('_id')}") from error


def _position(stream: str, seq: object) -> Record:
    return {"stream": stream, "seq": seq}


def _violated(error: errors.DuplicateKeyError) -> Mapping[str, object]:
    """The index whose uniqueness an insert broke."""
    pattern: Mapping[str, object] = (error.details or {}).get("keyPattern", {})
    return pattern


async def _listed(database: _Database, collection: str, start: Record, end: Record) -> list[Record]:
    """The first records from ``start`` on and before ``end``."""
    between = {"_id": {"$gte": start, "$lt": end}}
    return await database.call(
        lambda there: there[collection].find(between).sort("_id", 1).limit(PAGE_RECORDS).to_list(None)
    )


class MongoDocuments:
    """See ``shared.store.Documents``. All collections in one of MongoDB's, whose names may hold less."""

    def __init__(self, database: _Database) -> None:
        self._database = database

    async def put(self, collection: str, key: str, value: Mapping[str, object]) -> None:
        which, record = _named(collection, key), {"value": json.dumps(dict(value), allow_nan=False)}
        await self._database.call(lambda there: there["documents"].replace_one({"_id": which}, record, upsert=True))

    async def create(self, collection: str, key: str, value: Mapping[str, object]) -> dict[str, object] | None:
        record = {"_id": _named(collection, key), "value": json.dumps(dict(value), allow_nan=False)}
        while True:
            try:
                await self._database.call(lambda there: there["documents"].insert_one(record))
            except errors.DuplicateKeyError:
                standing = await self.get(collection, key)
                if standing is None:  # deleted since
                    continue
                return standing
            return None

    async def get(self, collection: str, key: str) -> dict[str, object] | None:
        which = {"_id": _named(collection, key)}
        record = await self._database.call(lambda there: there["documents"].find_one(which))
        return None if record is None else self._parsed(record)

    async def delete(self, collection: str, key: str) -> None:
        which = {"_id": _named(collection, key)}
        await self._database.call(lambda there: there["documents"].delete_one(which))

    async def scan(
        self, collection: str, prefix: str = "", after: str = ""
    ) -> AsyncIterator[tuple[str, dict[str, object]]]:
        position = max(prefix, after + "\x00") if after else prefix  # the smallest key after it
        while page := await _listed(
            self._database, "documents", _named(collection, position), _named(collection, MaxKey())
        ):
            for record in page:
                key = record["_id"]["key"]
                if not key.startswith(prefix):
                    return
                yield key, self._parsed(record)
            position = page[-1]["_id"]["key"] + "\x00"  # the smallest key after it

    def _parsed(self, record: Record) -> dict[str, object]:
        try:
            return dict(json.loads(record["value"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._database.damaged(f"document {record.get('_id')}") from error


def _named(collection: str, key: object) -> Record:
    return {"collection": collection, "key": key}


class MongoBlobs:
    """See ``shared.store.Blobs``. Short ones are one record, longer ones a record that is written after its chunks.

    Not GridFS: an upload that was cut off there blocks its name, while chunks named by their content's hash may be
    written by anybody, any number of times.
    """

    def __init__(self, database: _Database) -> None:
        self._database = database

    async def put(self, data: bytes) -> str:
        digest, size = ids.content_hash(data), len(data)
        if await self._database.call(lambda there: there["blobs"].find_one({"_id": digest}, {"_id": 1})):
            return digest
        if size <= CHUNK_BYTES:
            await self._insert("blobs", {"_id": digest, "data": data})
            return digest
        chunks = range(0, size, CHUNK_BYTES)
        for number, start in enumerate(chunks):
            await self._insert("chunks", {"_id": _chunk(digest, number), "data": data[start : start + CHUNK_BYTES]})
        await self._insert("blobs", {"_id": digest, "chunks": len(chunks)})
        return digest

    async def get(self, digest: str) -> bytes:
        record = await self._database.call(lambda there: there["blobs"].find_one({"_id": digest}))
        if record is None:
            raise KeyError(digest)
        data = b"".join([chunk async for chunk in self._parts(digest, record)])
        if ids.content_hash(data) != digest:
            raise Fatal(f"{self._database.shown}: blob {digest} does not match its name")
        return data

    async def _parts(self, digest: str, record: Record) -> AsyncIterator[bytes]:
        yield bytes(record.get("data", b""))
        for number in range(record.get("chunks", 0)):
            chunk = await self._part({"_id": _chunk(digest, number)})
            yield bytes(chunk["data"]) if chunk else b""

    async def _part(self, which: Record) -> Record | None:
        return await self._database.call(lambda there: there["chunks"].find_one(which))

    async def _insert(self, collection: str, record: Record) -> None:
        try:
            await self._database.call(lambda there: there[collection].insert_one(record))
        except errors.DuplicateKeyError:
            return  # the same content: somebody put it in the meantime


def _chunk(digest: str, number: int) -> Record:
    return {"blob": digest, "number": number}


class MongoStore:
    """See ``shared.store.Store``. Opening connects and creates the index; after ``Unavailable`` it may be tried again.

    ``url`` is ``mongodb://[user:password@]host[:port],…/[database][?options]`` or ``mongodb+srv://…``.

    Raises:
        UserError: a URL that cannot be used, a server that refuses us or is not a replica set.
    """

    def __init__(self, url: str) -> None:
        self._database = _Database(url)
        self.journal = MongoJournal(self._database)
        self.documents = MongoDocuments(self._database)
        self.blobs = MongoBlobs(self._database)

    async def __aenter__(self) -> Self:
        await self._database.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._database.close()

    async def ping(self) -> None:
        await self._database.call(lambda there: there.command("ping"))
