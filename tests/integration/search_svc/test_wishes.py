"""What is wished of a search: none is lost, whoever else wishes something at the same moment."""

from __future__ import annotations

import asyncio

from search_svc.index import Index
from search_svc.submissions import WISHES, Submissions
from shared import topics, wire
from shared.bus.memory import MemoryBus
from shared.cache.memory import MemoryCacheBackend
from shared.clock import ManualClock
from shared.events import ModelBudget, SearchCancelled, SearchResumed
from shared.ports import Ports
from shared.store.memory import MemoryStore
from tests.aio import on_loop
from tests.builders import a_search


class Slow:
    """Documents that wait before they put."""

    def __init__(self, documents) -> None:
        self._documents = documents
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._documents, name)

    async def put(self, collection, key, value) -> None:
        self.reached.set()
        await self.go.wait()
        await self._documents.put(collection, key, value)


def ports_over(store, bus) -> Ports:
    clock = ManualClock(10**18)
    return Ports(bus=bus, store=store, cache=MemoryCacheBackend(clock), clock=clock)


def submissions_over(ports) -> Submissions:
    return Submissions(ports, Index(ports.store, ports.clock))


async def facts_on(bus) -> list:
    return [wire.decode(delivery.record) async for delivery in bus.history(topics.FACTS)]


@on_loop
async def test_a_cancel_and_a_resume_at_the_same_moment_are_both_kept_and_both_published_again():
    store = MemoryStore()
    ports = ports_over(store, MemoryBus())
    slow_store = MemoryStore()
    slow_store.journal, slow_store.blobs, slow_store.documents = store.journal, store.blobs, Slow(store.documents)
    async with ports.bus, MemoryBus() as later:
        quick, slow = submissions_over(ports), submissions_over(ports_over(slow_store, ports.bus))
        search_id, _ = await quick.submit(a_search(), request_id="r", fingerprint="")
        resuming = asyncio.create_task(slow.resume(search_id, ModelBudget(tokens=5), journal_length=3))
        await slow_store.documents.reached.wait()
        await quick.cancel(search_id, "enough")
        slow_store.documents.go.set()
        await resuming

        await submissions_over(ports_over(store, later)).repeat(search_id, begun=True)
        assert {type(fact.event) for fact in await facts_on(later)} == {SearchCancelled, SearchResumed}
        await quick.ended(search_id)
        assert [key async for key, _ in store.documents.scan(WISHES)] == []
        assert await quick.open_searches() == []


@on_loop
async def test_a_second_resume_with_another_limit_is_a_wish_of_its_own_and_the_same_one_is_not():
    store = MemoryStore()
    ports = ports_over(store, MemoryBus())
    async with ports.bus, MemoryBus() as later:
        submissions = submissions_over(ports)
        search_id, _ = await submissions.submit(a_search(), request_id="r", fingerprint="")
        for tokens in (100, 100, 900):
            await submissions.resume(search_id, ModelBudget(tokens=tokens), journal_length=3)
        told = [fact for fact in await facts_on(ports.bus) if isinstance(fact.event, SearchResumed)]
        assert [fact.event.model.tokens for fact in told] == [100, 100, 900]
        assert told[0].id == told[1].id != told[2].id

        await submissions_over(ports_over(store, later)).repeat(search_id, begun=True)
        assert [fact.event.model.tokens for fact in await facts_on(later)] == [900]
