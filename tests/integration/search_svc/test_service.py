"""The search service on the memory bus and a real SQLite journal."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from search_svc import projection, replay, service
from search_svc.settings import Settings, from_env
from shared import topics, wire
from shared.clock import Clock, ManualClock
from shared.consume import ConsumeLimits
from shared.errors import Fatal, Poison, ReplayDivergence, UserError
from shared.events import EvaluationCompleted, SearchCancelled, SearchFinished
from shared.ports import Ports, open_ports
from shared.runtime import running
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.builders import SEARCH_ID, SECOND_NS, a_search, enveloped, produced
from tests.fakes.lab import Lab

LIMITS = ConsumeLimits(poll_wait_s=0.01)


@asynccontextmanager
async def ports_at(path: Path, clock: Clock | None = None):
    urls = PortSettings(bus_url="memory:", store_url=f"sqlite:{path}", cache_url="memory:")
    async with open_ports(urls, clock) as ports:
        yield ports


async def journal(ports: Ports, search_id: str = SEARCH_ID):
    return [entry async for entry in ports.store.journal.read(search_id)]


async def finished(ports: Ports, search_id: str = SEARCH_ID) -> SearchFinished:
    """Wait for the end of a search, as the command line does: on the facts, in a group of one's own."""
    async with ports.bus.subscribe(topics.FACTS, f"watch.{search_id}") as subscription:
        while True:
            delivery = await subscription.poll(1.0)
            event = wire.decode(delivery.record).event if delivery else None
            if isinstance(event, SearchFinished) and event.search_id == search_id:
                return event


async def searched(path: Path, **search):
    """Run a whole search; its journal and the lab."""
    async with ports_at(path) as ports:
        lab = Lab(ports)
        async with running([service.build(ports, Settings()), lab.service()], ports, LIMITS):
            await service.submit(ports, a_search(**search))
            await finished(ports)
        return await journal(ports), lab


@on_loop
async def test_a_search_runs_to_its_end_and_its_journal_replays(tmp_path):
    entries, lab = await searched(tmp_path / "run.db", evaluations=12)
    tree = replay.verify(entries).tree
    assert (tree.outcome, tree.charged) == ("improved", 12)
    assert all(entry.sent for entry in entries)
    assert len(lab.measured) == 12 + len(tree.finals)
    assert projection.winner(tree).final.speedup().low_ppm > 1_000_000


@pytest.mark.parametrize("column", ["event", "commands"])
@on_loop
async def test_a_row_altered_in_the_run_directory_is_found_at_its_position(tmp_path, column):
    path = tmp_path / "run.db"
    await searched(path, evaluations=8)
    with sqlite3.connect(path) as connection:
        rows = connection.execute(f"SELECT seq, {column} FROM journal ORDER BY seq").fetchall()
        seq, data = next(row for row in rows if row[0] > 6 and len(row[1]) > 100)
        altered = bytearray(data)
        altered[-30] ^= 1
        connection.execute(f"UPDATE journal SET {column} = ? WHERE seq = ?", (bytes(altered), seq))
    connection.close()
    async with ports_at(path) as ports:
        with pytest.raises(ReplayDivergence) as caught:
            replay.verify(await journal(ports))
        assert caught.value.seq == seq
        with pytest.raises(Fatal, match=f"entry {seq}"):
            await service.build(ports, Settings()).recover()


@on_loop
async def test_a_search_whose_process_and_bus_died_is_resumed_without_measuring_twice(tmp_path):
    path = tmp_path / "run.db"
    async with ports_at(path) as ports:
        lab = Lab(ports)
        lab.deaf_after = 5
        async with running([service.build(ports, Settings()), lab.service()], ports, LIMITS):
            await service.submit(ports, a_search(evaluations=12))
            while len(await journal(ports)) < 12:
                await asyncio.sleep(0)
        before = [wire.unpack(entry.event).event for entry in await journal(ports)]
    known = {event.evaluation_id for event in before if isinstance(event, EvaluationCompleted)}
    async with ports_at(path) as ports:
        again = Lab(ports)
        async with running([service.build(ports, Settings(reissue_outstanding=True)), again.service()], ports, LIMITS):
            await finished(ports)
        tree = replay.verify(await journal(ports)).tree
    assert (tree.outcome, tree.charged) == ("improved", 12)
    assert known
    assert known.isdisjoint(again.measured)
    assert len(again.measured) == len(set(again.measured))


@on_loop
async def test_a_fork_runs_beside_its_parent(tmp_path):
    path = tmp_path / "run.db"
    entries, _ = await searched(path, evaluations=8)
    async with ports_at(path) as ports:
        async with running([service.build(ports, Settings()), Lab(ports).service()], ports, LIMITS):
            await service.fork(ports, entries, at_seq=9, search_id="fork-1", policy="evolve", seed=3)
            assert (await finished(ports, "fork-1")).outcome == "improved"
        assert await journal(ports) == entries
        assert replay.verify(await journal(ports, "fork-1")).tree.search.policy == "evolve"
        with pytest.raises(UserError, match="search-1: is taken by another search"):
            await service.fork(ports, entries, at_seq=2, search_id=SEARCH_ID, policy="beam", seed=1)


@pytest.mark.parametrize("copied", [1, 5, 9])
@on_loop
async def test_a_fork_cut_off_before_it_began_asks_for_nothing_and_is_finished_by_forking_again(tmp_path, copied):
    path = tmp_path / "run.db"
    entries, _ = await searched(path, evaluations=8)
    async with ports_at(path) as ports:
        for entry in entries[:copied]:
            await ports.store.journal.append("fork-1", replace(entry, sent=True))
        lab = Lab(ports)
        async with running([service.build(ports, Settings(reissue_outstanding=True)), lab.service()], ports, LIMITS):
            assert (await journal(ports, "fork-1"))[copied:] == []
            for _ in range(2):
                await service.fork(ports, entries, at_seq=9, search_id="fork-1", policy="evolve", seed=3)
            assert (await finished(ports, "fork-1")).outcome == "improved"
        replay.verify(await journal(ports, "fork-1"))
        with pytest.raises(UserError, match="fork-1: is taken"):
            await service.fork(ports, entries, at_seq=8, search_id="fork-1", policy="evolve", seed=3)


@on_loop
async def test_downtime_before_a_resume_does_not_count_against_the_wall_clock(tmp_path):
    path, clock = tmp_path / "run.db", ManualClock(1_000 * SECOND_NS)
    async with ports_at(path, clock) as ports:
        owner = service.build(ports, Settings()).subscriptions[0].handler
        await owner(enveloped(a_search(evaluations=12, wall_ns=60 * SECOND_NS, at_ns=clock.now_ns())))
    clock.advance(3_600 * SECOND_NS)
    async with ports_at(path, clock) as ports:
        lab = Lab(ports)
        async with running([service.build(ports, Settings(reissue_outstanding=True)), lab.service()], ports, LIMITS):
            assert (await finished(ports)).reason == "evaluations"
        tree = replay.verify(await journal(ports)).tree
    assert tree.down_ns == 3_600 * SECOND_NS
    assert projection.summarize(tree).elapsed_ns < 60 * SECOND_NS


@on_loop
async def test_cancelling_a_search_finishes_it(tmp_path):
    async with ports_at(tmp_path / "run.db") as ports, running([service.build(ports, Settings())], ports, LIMITS):
        await service.submit(ports, a_search())
        await service.cancel(ports, SEARCH_ID, "user")
        assert (await finished(ports)).outcome == "cancelled"


@on_loop
async def test_a_fact_of_an_unknown_search_is_poison(tmp_path):
    async with ports_at(tmp_path / "run.db") as ports:
        handler = service.build(ports, Settings()).subscriptions[0].handler
        with pytest.raises(Poison, match="never started"):
            await handler(enveloped(SearchCancelled(search_id="nobody", reason="user")))
        with pytest.raises(Poison, match="unknown policy"):
            await handler(enveloped(a_search(policy="bfs")))
        assert await ports.store.journal.streams() == []


@on_loop
async def test_searches_beyond_the_memory_limit_are_read_again(tmp_path):
    async with ports_at(tmp_path / "run.db") as ports:
        handler = service.build(ports, Settings(trees_in_memory_max=1)).subscriptions[0].handler
        for name in ("one", "two", "one", "two"):
            entries = await journal(ports, name)
            if not entries:
                await handler(enveloped(a_search(search_id=name)))
                continue
            request = wire.unpack(entries[0].commands[0]).event
            await handler(enveloped(produced(request, 0, f"kernel of {name}")))
        for name in ("one", "two"):
            assert replay.verify(await journal(ports, name)).tree.charged == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": "bfs"}, "unknown policy"),
        ({"parameters": {"width": 3}}, "no such parameter"),
        ({"evaluations": 0}, "evaluations must be at least 1, not 0"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"stall": -1}, "a limit is negative"),
        ({"baseline": "fastest"}, "unknown baseline"),
        ({"logic_version": 99}, "unknown decision logic version 99"),
    ],
)
@on_loop
async def test_a_search_that_could_not_run_is_refused_when_submitted(tmp_path, changes, message):
    async with ports_at(tmp_path / "run.db") as ports:
        with pytest.raises(UserError, match=message):
            await service.submit(ports, a_search(**changes))


def test_settings_come_from_the_environment():
    settings, port_settings = from_env({"SEARCH_TREES_IN_MEMORY_MAX": "3", "BUS_URL": "memory:"})
    assert settings == replace(Settings(), trees_in_memory_max=3)
    assert port_settings.bus_url == "memory:"
    with pytest.raises(UserError, match="members must be at least 1"):
        from_env({"SEARCH_MEMBERS": "0"})
