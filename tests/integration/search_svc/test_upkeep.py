"""What keeps searches going and their rows right, driven step by step: no wait but the clock's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from search_svc import replica
from search_svc.settings import Settings
from shared import wire
from shared.bus.memory import MemoryBus
from shared.cache.memory import MemoryCacheBackend
from shared.clock import SECOND_NS, ManualClock
from shared.errors import Poison, Stranded, Unavailable
from shared.events import ExpansionRequested, SearchCancelled, SearchStarted
from shared.ports import Ports
from shared.store.memory import MemoryStore
from tests.aio import on_loop
from tests.builders import a_search, enveloped

SETTINGS = Settings(sweep_s=5.0, ask_again_after_s=30.0)
RUNNING = asyncio.Event()
"""Nobody was told to stop."""


class Bus:
    """A bus whose broker can go away, and can refuse events."""

    def __init__(self) -> None:
        self._bus = MemoryBus()
        self.gone = False
        self.refuses: tuple[type, ...] = ()
        self.published: list[object] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._bus, name)

    async def publish(self, topic, record) -> None:
        event = wire.decode(record).event
        if self.gone:
            raise Unavailable("no broker")
        if isinstance(event, self.refuses):
            raise Poison("a record of 2 MB")
        await self._bus.publish(topic, record)
        self.published.append(event)

    def asked(self, search_id: str) -> int:
        """How often an expansion of ``search_id`` was asked for."""
        return sum(isinstance(event, ExpansionRequested) and event.search_id == search_id for event in self.published)


class Slow:
    """Documents whose ``put`` waits once."""

    def __init__(self, documents) -> None:
        self._documents = documents
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._documents, name)

    async def put(self, collection, key, value) -> None:
        self.reached.set()
        await self.go.wait()
        await self._documents.put(collection, key, value)


async def fresh_ports() -> Ports:
    clock, bus = ManualClock(10**18), Bus()
    await bus.__aenter__()
    return Ports(bus=bus, store=MemoryStore(), cache=MemoryCacheBackend(clock), clock=clock)


async def begun(ports: Ports, parts: replica.Replica, name: str) -> None:
    """A search that is submitted, journalled and waits for its first expansion."""
    search = a_search(search_id=name, expansions_in_flight=1, at_ns=ports.clock.now_ns())
    search_id, _ = await parts.submissions.submit(search, request_id=name, fingerprint="")
    wish = await parts.submissions.known(search_id)
    await parts.on_fact(enveloped(wish))


def id_of(ports: Ports, number: int = 0) -> str:
    return sorted(ports.store.journal._streams)[number]


async def sweep_after(ports: Ports, parts: replica.Replica, seconds: float) -> None:
    ports.clock.advance(round(seconds * SECOND_NS))
    await parts.sweeper.sweep(RUNNING)


@on_loop
async def test_a_late_row_of_a_former_owner_does_not_stand():
    ports = await fresh_ports()
    new = replica.assemble(ports, SETTINGS)
    await begun(ports, new, "r")
    search_id = id_of(ports)

    slow = Slow(ports.store.documents)
    store = MemoryStore()
    store.journal, store.blobs, store.documents = ports.store.journal, ports.store.blobs, slow
    former = replica.assemble(replace(ports, store=store), SETTINGS)
    late = asyncio.create_task(former.owner.ask_again(search_id))
    await slow.reached.wait()
    await new.on_fact(enveloped(SearchCancelled(search_id=search_id, reason="enough", at_ns=ports.clock.now_ns())))
    slow.go.set()
    await late

    (row,) = [row async for _, row in new.index.rows()]
    assert row["phase"] == "finished"


@on_loop
async def test_what_a_broker_that_was_away_did_not_hear_is_asked_as_soon_as_it_is_back():
    ports = await fresh_ports()
    parts = replica.assemble(ports, SETTINGS)
    await begun(ports, parts, "r")
    search_id = id_of(ports)
    await sweep_after(ports, parts, 0)
    before = ports.bus.asked(search_id)
    ports.bus.gone = True
    for seconds in (31, 5, 5, 5):
        with pytest.raises(Unavailable):
            await sweep_after(ports, parts, seconds)
    ports.bus.gone = False
    await sweep_after(ports, parts, 5)
    assert ports.bus.asked(search_id) == before + 1
    await sweep_after(ports, parts, 35)
    assert ports.bus.asked(search_id) == before + 1, "the pause doubles"


@on_loop
async def test_a_search_whose_requests_no_bus_takes_strands_its_own_facts_and_no_other_search():
    ports = await fresh_ports()
    parts = replica.assemble(ports, SETTINGS)
    await begun(ports, parts, "sound")
    ports.bus.refuses = (ExpansionRequested,)
    with pytest.raises(Stranded, match="a record of 2 MB"):
        await begun(ports, parts, "broken")
    sound, broken = (await parts.submissions.open_searches())[:2]
    if ports.bus.asked(sound) == 0:
        sound, broken = broken, sound
    ports.bus.refuses = ()
    before = ports.bus.asked(sound)
    await sweep_after(ports, parts, 0)
    publish = ports.bus.publish

    async def refuses_one(topic, record) -> None:
        if getattr(wire.decode(record).event, "search_id", "") == broken:
            raise Poison("a record of 2 MB")
        await publish(topic, record)

    ports.bus.publish = refuses_one
    await sweep_after(ports, parts, 31)
    assert ports.bus.asked(sound) == before + 1


@on_loop
async def test_a_sweep_looks_at_no_further_search_when_told_to_stop():
    ports = await fresh_ports()
    parts = replica.assemble(ports, SETTINGS)
    for name in ("a", "b", "c"):
        await begun(ports, parts, name)
    await sweep_after(ports, parts, 0)
    before = len(ports.bus.published)
    stop, publish = asyncio.Event(), ports.bus.publish

    async def stops(topic, record) -> None:
        stop.set()
        await publish(topic, record)

    ports.bus.publish = stops
    ports.clock.advance(31 * SECOND_NS)
    await parts.sweeper.sweep(stop)
    assert len(ports.bus.published) == before + 1


@on_loop
async def test_a_wish_that_the_bus_refuses_stops_no_sweep():
    ports = await fresh_ports()
    parts = replica.assemble(ports, SETTINGS)
    ports.bus.refuses = (SearchStarted,)
    with pytest.raises(Poison):
        await parts.submissions.submit(a_search(at_ns=ports.clock.now_ns()), request_id="r", fingerprint="")
    await sweep_after(ports, parts, 0)
    await sweep_after(ports, parts, 31)
    ports.bus.refuses = ()
    await sweep_after(ports, parts, 301)
    assert [type(event) for event in ports.bus.published] == [SearchStarted]
