"""The MongoDB store honours its port, and what it does when its server crashes, refuses or is no replica set."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection

from deploy.local.servers import Command, mongo, store_url
from shared import ids
from shared.errors import Conflict, Fatal, Unavailable, UserError
from shared.patience import patiently
from shared.store.mongo import CHUNK_BYTES, MongoStore
from tests import servers
from tests.aio import on_loop, until
from tests.contract.store_contract import StoreContract, an_entry, listed

PREFIX = f"kernelevolve_test_{os.getpid()}_"
numbers = itertools.count()


@pytest.fixture(autouse=True, scope="module")
def server() -> Iterator[None]:
    """Started before any event loop; on a server that stays, the databases that were made here are dropped."""
    url = servers.mongo_url()
    yield
    if "MONGO_URL" not in os.environ:
        return
    with MongoClient(url) as client:
        for name in client.list_database_names():
            if name.startswith(PREFIX):
                client.drop_database(name)


def a_url() -> str:
    """Of an empty database."""
    return servers.mongo_url(f"{PREFIX}{next(numbers)}")


def server_url(server: servers.Server) -> str:
    return store_url(server.port)


@contextmanager
def collection(url: str, name: str) -> Iterator[Collection[dict[str, Any]]]:
    """What the store keeps, by another way."""
    with MongoClient(url) as client:
        yield client.get_default_database()[name]


class TestMongoStore(StoreContract):
    def make(self) -> MongoStore:
        return MongoStore(a_url())

    @on_loop
    async def test_a_closed_store_is_fatal(self) -> None:
        async with self.make() as store:
            pass
        with pytest.raises(Fatal, match="is closed"):
            await store.ping()

    @on_loop
    async def test_of_several_owners_one_appends_each_entry(self) -> None:
        url, won = a_url(), Counter[int]()

        async def own(name: str) -> None:
            async with MongoStore(url) as store:
                while (seq := len(await listed(store.journal.read("s")))) < 25:
                    with suppress(Conflict):
                        await store.journal.append("s", an_entry(seq, f"{name}{seq}"))
                        won[seq] += 1

        await asyncio.gather(*(own(name) for name in "abcd"))
        async with MongoStore(url) as store:
            assert [entry.seq async for entry in store.journal.read("s")] == list(range(25))
        assert won == dict.fromkeys(range(25), 1)

    @on_loop
    async def test_a_blob_longer_than_a_record_may_be_is_cut_and_joined(self) -> None:
        data = random.Random(1).randbytes(2 * CHUNK_BYTES + 5)
        async with self.make() as store:
            digests = await asyncio.gather(*(store.blobs.put(data) for _ in range(3)))
            assert set(digests) == {ids.content_hash(data)}
            assert await store.blobs.get(digests[0]) == data

    @on_loop
    async def test_an_upload_that_was_cut_off_is_not_there_and_can_be_made_again(self) -> None:
        data, url = b"x" * (CHUNK_BYTES + 1), a_url()
        digest = ids.content_hash(data)
        with collection(url, "chunks") as chunks:
            chunks.insert_one({"_id": {"blob": digest, "number": 0}, "data": data[:CHUNK_BYTES]})
        async with MongoStore(url) as store:
            with pytest.raises(KeyError):
                await store.blobs.get(digest)
            await store.blobs.put(data)
            assert await store.blobs.get(digest) == data

    @pytest.mark.parametrize("damage", [{"$set": {"data": b"other"}}, {"$unset": {"data": ""}}])
    @on_loop
    async def test_a_damaged_blob_is_fatal(self, damage: dict[str, object]) -> None:
        url = a_url()
        async with MongoStore(url) as store:
            digest = await store.blobs.put(b"data")
            with collection(url, "blobs") as blobs:
                blobs.update_one({"_id": digest}, damage)
            with pytest.raises(Fatal, match="does not match its name"):
                await store.blobs.get(digest)

    @on_loop
    async def test_an_entry_too_large_for_a_record_is_fatal(self) -> None:
        async with self.make() as store:
            with pytest.raises(Fatal):
                await store.journal.append("s", an_entry(0, event=bytes(17 * 1024 * 1024)))


class TestMongoIsAway:
    """On servers of their own, which these tests kill."""

    def test_nothing_acknowledged_is_lost_when_it_is_killed_under_load(self) -> None:
        server = servers.fresh_mongo()
        try:
            servers.initiate(server)
            asyncio.run(write_while_killed(server))
        finally:
            server.close()

    def test_an_append_whose_answer_was_lost_happens_once(self) -> None:
        server = servers.fresh_mongo()
        try:
            asyncio.run(refused_before_it_is_initiated(server))
            servers.initiate(server)
            asyncio.run(append_while_frozen(server))
        finally:
            server.close()

    @on_loop
    async def test_it_can_be_opened_later_when_it_was_not_there(self) -> None:
        store = MongoStore(f"mongodb://127.0.0.1:{servers.free_port()}/?serverSelectionTimeoutMS=100")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await store.__aenter__()
        with pytest.raises(Fatal, match="is closed"):
            await store.ping()


async def write_while_killed(server: servers.Server) -> None:
    acknowledged: Counter[str] = Counter()
    hasty = "&serverSelectionTimeoutMS=300"
    async with MongoStore(server_url(server) + hasty) as store, asyncio.TaskGroup() as tasks:

        async def write(stream: str) -> None:
            while acknowledged[stream] < 30:
                seq = len(await patiently(lambda: listed(store.journal.read(stream)), "read"))
                assert seq >= acknowledged[stream]
                entry = an_entry(seq)
                with suppress(Conflict):
                    await patiently(partial(store.journal.append, stream, entry), "append")
                    acknowledged[stream] = seq + 1

        for number in range(4):
            tasks.create_task(write(f"s{number}"))
        await until(lambda: acknowledged.total() >= 20)
        server.kill()
        await until_unavailable(store)
        server.start()
    async with MongoStore(server_url(server)) as store:
        for stream, count in acknowledged.items():
            assert [entry.seq async for entry in store.journal.read(stream)][:count] == list(range(count))


async def until_unavailable(store: MongoStore) -> None:
    with pytest.raises(Unavailable):
        await store.ping()


async def refused_before_it_is_initiated(server: servers.Server) -> None:
    for url in (server_url(server), f"mongodb://127.0.0.1:{server.port}/db"):
        with pytest.raises(Unavailable):
            async with MongoStore(f"{url}{'&' if '?' in url else '?'}serverSelectionTimeoutMS=300"):
                pass


async def append_while_frozen(server: servers.Server) -> None:
    hasty = "&socketTimeoutMS=300&serverSelectionTimeoutMS=300"
    async with MongoStore(server_url(server) + hasty) as store:
        await store.journal.append("s", an_entry(0))
        server.freeze()
        try:
            with pytest.raises(Unavailable):
                await store.journal.append("s", an_entry(1))
            with pytest.raises(Unavailable):
                await store.ping()
        finally:
            server.thaw()
        with suppress(Conflict):
            await patiently(lambda: store.journal.append("s", an_entry(1)), "append")
        assert await patiently(lambda: listed(store.journal.read("s")), "read") == [an_entry(0), an_entry(1)]


class TestMongoRefuses:
    @pytest.mark.parametrize("options", ["", "?replicaSet=rs0&serverSelectionTimeoutMS=300"])
    def test_a_server_without_a_replica_set_is_a_users_mistake(self, standalone: int, options: str) -> None:
        with pytest.raises(UserError) as caught:
            asyncio.run(opened(f"mongodb://127.0.0.1:{standalone}/db{options}"))
        assert str(caught.value).startswith(f"STORE_URL=mongodb://127.0.0.1:{standalone}/db: is not ")
        assert "start mongod with --replSet" in str(caught.value)

    @on_loop
    async def test_another_replica_set_is_a_users_mistake(self) -> None:
        url = servers.mongo_url().replace("replicaSet=", "serverSelectionTimeoutMS=300&replicaSet=not-")
        with pytest.raises(UserError, match="is not of the replica set that the URL names"):
            await opened(url)

    @on_loop
    async def test_a_wrong_password_is_a_users_mistake_and_is_not_shown(self) -> None:
        url = servers.mongo_url().replace("mongodb://", "mongodb://somebody:secret@")
        with pytest.raises(UserError, match="refuses the user or the password") as caught:
            await opened(url)
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        ["mongodb://", "mongodb://host:port/db", "mongodb://h/db?noSuchOption=1", "mongodb://h/db?tls=perhaps",
         "mongodb://u:p%@h/db", "mongodb://h/db?tls=true&tlsCAFile=/no/such/file"],
    )  # fmt: skip
    @on_loop
    async def test_a_url_that_cannot_be_used_is_a_users_mistake(self, url: str) -> None:
        with pytest.raises(UserError, match="cannot be used"):
            await opened(url)


async def opened(url: str) -> None:
    async with MongoStore(url):
        pass


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server that is no member of a replica set."""
    folder = tmp_path_factory.mktemp("standalone")

    def command(port: int) -> Command:
        of_a_set = mongo(port, folder)
        argv = [word for word in of_a_set.argv if not word.startswith(("--replSet", "--oplogSize"))]
        return replace(of_a_set, argv=tuple(argv))

    server = servers.Server(command).start()
    yield server.port
    server.close()
