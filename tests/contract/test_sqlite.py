"""The SQLite store honours its port, survives its process, and knows its own files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from shared import ids
from shared.errors import Conflict, Fatal, LogError
from shared.store.sqlite import SqliteStore
from tests.aio import on_loop
from tests.contract.store_contract import StoreContract, an_entry, listed

_WRITER = """
import asyncio, sys
from pathlib import Path
from shared.store import JournalEntry
from shared.store.sqlite import SqliteStore

async def write():
    async with SqliteStore(Path(sys.argv[1])) as store:
        seq = 0
        while True:
            entry = JournalEntry(seq=seq, event_id=f"e{seq}", event=b"x" * 2000, commands=(b"c",))
            await store.journal.append("s", entry)
            print(seq, flush=True)
            seq += 1

asyncio.run(write())
"""


class TestSqliteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "new folder" / "store.db"

    def make(self) -> SqliteStore:
        return SqliteStore(self.path)

    @on_loop
    async def test_everything_is_there_after_reopening(self) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0))
            await store.journal.mark_sent("s", 0)
            await store.documents.put("c", "k", {"a": 1})
            digest = await store.blobs.put(b"data")
        async with self.make() as store:
            assert await listed(store.journal.read("s")) == [an_entry(0, sent=True)]
            assert await store.documents.get("c", "k") == {"a": 1}
            assert await store.blobs.get(digest) == b"data"

    @on_loop
    async def test_of_two_owners_of_a_stream_one_gets_the_next_entry(self) -> None:
        async with self.make() as one, self.make() as two:
            await one.journal.append("s", an_entry(0))
            results = await asyncio.gather(
                one.journal.append("s", an_entry(1, "mine")),
                two.journal.append("s", an_entry(1, "yours")),
                return_exceptions=True,
            )
            assert sorted(type(result) for result in results if result is not None) == [Conflict]
            assert len(await listed(two.journal.read("s"))) == 2

    def test_kill_9_loses_no_entry_whose_append_returned(self) -> None:
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(self.path)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        )
        with writer:
            assert writer.stdout is not None
            acknowledged = [int(writer.stdout.readline()) for _ in range(50)][-1]
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])

        async def seqs() -> list[int]:
            async with self.make() as store:
                return [entry.seq async for entry in store.journal.read("s")]

        found = asyncio.run(seqs())
        assert found == list(range(len(found)))
        assert len(found) in (acknowledged + 1, acknowledged + 2)

    @on_loop
    async def test_a_blob_that_rotted_is_fatal(self) -> None:
        async with self.make() as store:
            digest = await store.blobs.put(b"data")
        with sqlite3.connect(self.path) as connection:
            connection.execute("UPDATE blob SET data = x'00'")
        connection.close()
        async with self.make() as store:
            with pytest.raises(Fatal, match=digest):
                await store.blobs.get(digest)

    def test_damage_anywhere_in_the_file_is_an_error_of_ours_or_harmless(self) -> None:
        asyncio.run(self._fill())
        whole = self.path.read_bytes()
        for position in range(0, len(whole), len(whole) // 150):
            self.path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xA5]) + whole[position + 1 :])
            with contextlib.suppress(LogError, Fatal):
                asyncio.run(self._read_everything())
            for leftover in self.path.parent.glob("store.db-*"):
                leftover.unlink()

    async def _fill(self) -> None:
        async with self.make() as store:
            for seq in range(20):
                await store.journal.append("s", an_entry(seq, event=b"e" * 50, digest=f"{seq:064}"))
                await store.documents.put("c", f"k{seq}", {"value": ["x"] * 10})
                await store.blobs.put(bytes([seq]) * 300)

    async def _read_everything(self) -> None:
        async with self.make() as store:
            for stream in await store.journal.streams():
                await listed(store.journal.read(stream))
            await listed(store.documents.scan("c"))
            for seq in range(20):
                with contextlib.suppress(KeyError):  # its name is what was damaged
                    await store.blobs.get(ids.content_hash(bytes([seq]) * 300))

    @on_loop
    async def test_a_journal_whose_commands_are_damaged_says_which_entry(self) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0))
        with sqlite3.connect(self.path) as connection:
            connection.execute("UPDATE journal SET commands = x'0AFF'")
        connection.close()
        async with self.make() as store:
            with pytest.raises(LogError, match="store.db: is damaged: the commands of entry 0"):
                await listed(store.journal.read("s"))

    @on_loop
    async def test_a_file_that_is_no_database_is_named(self) -> None:
        self.path.parent.mkdir()
        self.path.write_bytes(b"hello" * 1000)
        with pytest.raises(LogError, match="store.db"):
            async with self.make():
                pass
        assert self.path.read_bytes() == b"hello" * 1000

    @on_loop
    async def test_a_database_of_something_else_is_left_alone(self) -> None:
        self.path.parent.mkdir()
        with sqlite3.connect(self.path) as connection:
            connection.execute("CREATE TABLE theirs (x)")
        connection.close()
        before = self.path.read_bytes()
        with pytest.raises(LogError, match="is not a store of format 1"):
            async with self.make():
                pass
        assert self.path.read_bytes() == before

    @on_loop
    async def test_a_store_of_a_later_format_is_refused(self) -> None:
        async with self.make():
            pass
        with sqlite3.connect(self.path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(LogError, match="is not a store of format 1"):
            async with self.make():
                pass

    @on_loop
    async def test_a_path_below_a_file_is_one_clear_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(LogError, match="cannot be opened"):
            async with SqliteStore(tmp_path / "file" / "store.db"):
                pass

    @on_loop
    async def test_a_closed_store_refuses_work(self) -> None:
        store = self.make()
        async with store:
            pass
        with pytest.raises(Fatal, match="closed"):
            await store.blobs.put(b"")
