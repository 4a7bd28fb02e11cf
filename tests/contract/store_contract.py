"""What every store promises. An adapter's test class inherits this and says how to make one."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared import ids
from shared.errors import Conflict
from shared.store import JournalEntry, Store
from tests.aio import on_loop


def an_entry(seq: int, event_id: str = "", **changes: Any) -> JournalEntry:
    values = {"event": b"\x00e", "commands": (b"", b"\xff1"), "digest": f"d{seq}"} | changes
    return JournalEntry(seq=seq, event_id=event_id or f"e{seq}", **values)


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


class StoreContract(ABC):
    @abstractmethod
    def make(self) -> Store:
        """An empty store, not open yet."""

    @on_loop
    async def test_a_stream_reads_back_as_it_was_written(self) -> None:
        entries = [an_entry(0, commands=()), an_entry(1, sent=True), an_entry(2)]
        async with self.make() as store:
            for entry in entries:
                await store.journal.append("s", entry)
            assert await listed(store.journal.read("s")) == entries
            assert await listed(store.journal.read("s", 2)) == entries[2:]
            assert await listed(store.journal.read("s", 9)) == []
            assert await listed(store.journal.read("nothing")) == []

    @on_loop
    async def test_a_long_stream_reads_back_whole_and_in_order(self) -> None:
        async with self.make() as store:
            for seq in range(600):
                await store.journal.append("s", an_entry(seq))
            assert [entry.seq async for entry in store.journal.read("s")] == list(range(600))

    @pytest.mark.parametrize("seq", [0, 2, 7])
    @on_loop
    async def test_only_the_next_entry_may_be_appended(self, seq: int) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0))
            with pytest.raises(Conflict):
                await store.journal.append("s", an_entry(seq, "other"))
            assert await listed(store.journal.read("s")) == [an_entry(0)]

    @on_loop
    async def test_an_event_is_journalled_once_per_stream(self) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0, "same"))
            with pytest.raises(Conflict):
                await store.journal.append("s", an_entry(1, "same"))
            await store.journal.append("t", an_entry(0, "same"))
            await store.journal.append("s", an_entry(1, "next"))
            assert len(await listed(store.journal.read("s"))) == 2

    @on_loop
    async def test_a_refused_entry_leaves_no_stream_behind(self) -> None:
        async with self.make() as store:
            with pytest.raises(Conflict):
                await store.journal.append("s", an_entry(1))
            assert await store.journal.streams() == []

    @on_loop
    async def test_sent_is_marked_as_often_as_one_likes(self) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0))
            await store.journal.append("s", an_entry(1))
            await store.journal.mark_sent("s", 1)
            await store.journal.mark_sent("s", 1)
            assert [entry.sent async for entry in store.journal.read("s")] == [False, True]

    @pytest.mark.parametrize(("stream", "seq"), [("s", 1), ("s", -1), ("t", 0)])
    @on_loop
    async def test_an_entry_that_does_not_exist_cannot_be_marked(self, stream: str, seq: int) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0))
            with pytest.raises(KeyError):
                await store.journal.mark_sent(stream, seq)

    @on_loop
    async def test_streams_are_listed_in_order(self) -> None:
        async with self.make() as store:
            for name in ("b", "a", "ä"):
                await store.journal.append(name, an_entry(0))
            assert list(await store.journal.streams()) == ["a", "b", "ä"]

    @on_loop
    async def test_a_stream_may_grow_while_it_is_read(self) -> None:
        async with self.make() as store:
            await store.journal.append("s", an_entry(0))
            async for entry in store.journal.read("s"):
                if entry.seq == 0:
                    await store.journal.append("s", an_entry(1))
            assert len(await listed(store.journal.read("s"))) == 2

    @on_loop
    async def test_documents_are_replaced_whole_and_deleted(self) -> None:
        async with self.make() as store:
            documents = store.documents
            await documents.put("c", "k", {"a": [1, 2.5, None, True], "ü": {"x": "y"}})
            assert await documents.get("c", "k") == {"a": [1, 2.5, None, True], "ü": {"x": "y"}}
            await documents.put("c", "k", {"b": 1})
            assert await documents.get("c", "k") == {"b": 1}
            assert await documents.get("other", "k") is None
            await documents.delete("c", "k")
            await documents.delete("c", "k")
            assert await documents.get("c", "k") is None

    @on_loop
    async def test_a_document_is_a_copy(self) -> None:
        async with self.make() as store:
            value: dict[str, Any] = {"list": [1]}
            await store.documents.put("c", "k", value)
            value["list"].append(2)
            found: Any = await store.documents.get("c", "k")
            found["list"].append(3)
            assert await store.documents.get("c", "k") == {"list": [1]}

    @pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": b"bytes"}])
    @on_loop
    async def test_what_json_cannot_hold_is_refused(self, value: dict[str, object]) -> None:
        async with self.make() as store:
            with pytest.raises((TypeError, ValueError)):
                await store.documents.put("c", "k", value)

    @on_loop
    async def test_a_scan_is_in_key_order_and_takes_a_prefix_literally(self) -> None:
        keys = ["a", "a%", "a%b", "a_b", "ab", "b", "é", "a\x00c"]
        async with self.make() as store:
            for key in keys:
                await store.documents.put("c", key, {"key": key})
            await store.documents.put("d", "ab", {})
            assert await listed(store.documents.scan("c")) == [(key, {"key": key}) for key in sorted(keys)]
            assert [key async for key, _ in store.documents.scan("c", "a%")] == ["a%", "a%b"]
            assert [key async for key, _ in store.documents.scan("c", "a_")] == ["a_b"]
            assert [key async for key, _ in store.documents.scan("c", "zz")] == []

    @on_loop
    async def test_a_long_scan_is_complete(self) -> None:
        async with self.make() as store:
            for number in range(600):
                await store.documents.put("c", f"{number:04}", {})
            assert [key async for key, _ in store.documents.scan("c")] == [f"{number:04}" for number in range(600)]

    @on_loop
    async def test_a_blob_is_named_by_its_content(self) -> None:
        async with self.make() as store:
            digest = await store.blobs.put(b"\x00data")
            assert digest == ids.content_hash(b"\x00data")
            assert await store.blobs.put(b"\x00data") == digest
            assert await store.blobs.get(digest) == b"\x00data"
            assert await store.blobs.get(await store.blobs.put(b"")) == b""

    @on_loop
    async def test_an_unknown_blob_is_a_key_error(self) -> None:
        async with self.make() as store:
            with pytest.raises(KeyError):
                await store.blobs.get(ids.content_hash(b"nowhere"))

    @on_loop
    async def test_of_several_creators_one_puts_and_the_others_are_told_what_is_there(self) -> None:
        async with self.make() as store:
            made = await asyncio.gather(*(store.documents.create("c", "k", {"n": n}) for n in range(8)))
            standing = await store.documents.get("c", "k")
            assert made.count(None) == 1
            assert standing == {"n": made.index(None)}
            assert all(other == standing for other in made if other is not None)
            await store.documents.delete("c", "k")
            assert await store.documents.create("c", "k", {"n": "again"}) is None

    @on_loop
    async def test_a_scan_goes_on_after_a_key(self) -> None:
        async with self.make() as store:
            for key in ("a1", "a2", "a3", "b1"):
                await store.documents.put("c", key, {})
            assert [key async for key, _ in store.documents.scan("c", "a", after="a1")] == ["a2", "a3"]
            assert [key async for key, _ in store.documents.scan("c", after="a3")] == ["b1"]
            assert [key async for key, _ in store.documents.scan("c", "b", after="a1")] == ["b1"]
            assert [key async for key, _ in store.documents.scan("c", "a", after="b1")] == []

    @on_loop
    async def test_names_and_keys_may_hold_any_character(self) -> None:
        odd = ["", ".", "$", "a.b", "$set", "\x00", "a\x00", "\U0010ffff", "/", " ", "x" * 5000]
        value = {"$set": {"a.b": 1, "": None}, "_id": "mine", "é\x00": ["$"]}
        async with self.make() as store:
            for name in odd:
                assert await store.documents.create(name, name, value) is None
                await store.documents.put(name, f"{name}2", {})
                await store.journal.append(name, an_entry(0, name))
            for name in odd:
                assert await store.documents.get(name, name) == value
                assert await listed(store.documents.scan(name)) == [(name, value), (f"{name}2", {})]
                assert await listed(store.journal.read(name)) == [an_entry(0, name)]
            assert list(await store.journal.streams()) == sorted(odd)

    @on_loop
    async def test_an_open_store_answers_a_ping(self) -> None:
        async with self.make() as store:
            await store.ping()
