"""``KernelEvolveClient`` against the search service's own servicer, and against a server that comes and goes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from cli import history
from cli.client import open_client
from protos.search.v1 import search_service_pb2 as pb
from search_svc import replay
from shared.errors import AlreadyExists, NotFound, Unavailable, UserError
from shared.events import Budget, SearchFinished, SearchStarted
from shared.rpc.settings import ClientSettings
from tests.aio import on_loop
from tests.integration.rpc.cluster import served_cluster
from tests.integration.rpc.toys import Toy, toy_server
from tests.integration.search_svc.replica import OPERATOR
from tests.servers import free_port
from tests.unit.cli.recorded import record

BUDGET = Budget(evaluations=8)


@asynccontextmanager
async def client_of_a_cluster():
    """A client, and the cluster that it is a client of."""
    async with (
        served_cluster() as cluster,
        open_client(ClientSettings(server=cluster.address)) as client,
    ):
        yield client, cluster


async def submitted(client, **changes) -> str:
    wish = {"chip": "cpu-x86_64", "budget": BUDGET} | changes
    return (await client.submit("increment", OPERATOR, **wish)).search_id


@on_loop
async def test_a_search_is_submitted_watched_looked_at_and_listed():
    async with client_of_a_cluster() as (client, _):
        search_id = await submitted(client, priority=3, seed=5)
        steps = [step async for step in client.watch(search_id)]
        assert [step.seq for step in steps] == list(range(len(steps)))
        started = steps[0].fact.event
        assert isinstance(started, SearchStarted)
        assert (started.priority, started.seed, started.budget) == (3, 5, BUDGET)
        assert any(isinstance(decision.event, SearchFinished) for decision in steps[-1].decisions)
        found = await client.get(search_id)
        assert (found.phase, found.charged, found.journal_length) == ("finished", 8, len(steps))
        assert [search.search_id async for search in client.list(phase="finished")] == [search_id]
        assert [search.search_id async for search in client.list(chip="another")] == []
        nodes = [node async for node in client.tree(search_id)]
        assert len(nodes) == found.nodes
        assert nodes[0].candidate_id == found.best_candidate_id
        assert list(await client.pools()) == []


@on_loop
async def test_the_same_request_id_is_the_same_search_and_never_another_one():
    async with client_of_a_cluster() as (client, _):
        first = await client.submit("increment", OPERATOR, chip="cpu-x86_64", budget=BUDGET, request_id="r")
        again = await client.submit("increment", OPERATOR, chip="cpu-x86_64", budget=BUDGET, request_id="r")
        assert (again.search_id, first.created, again.created) == (first.search_id, True, False)
        with pytest.raises(AlreadyExists, match="client_request_id r"):
            await client.submit("increment", OPERATOR, chip="cpu-x86_64", budget=BUDGET, request_id="r", seed=1)


@on_loop
async def test_a_cancelled_search_ends_as_cancelled():
    async with client_of_a_cluster() as (client, cluster):
        cluster.lab.deaf_after = 2
        search_id = await submitted(client, budget=Budget(evaluations=500))
        await client.cancel(search_id, "wrong shapes")
        last = [step async for step in client.watch(search_id)][-1]
        assert [decision.event.outcome for decision in last.decisions] == ["cancelled"]
        assert (await client.get(search_id)).outcome == "cancelled"


@on_loop
async def test_mistakes_come_back_as_the_line_that_the_server_wrote():
    async with client_of_a_cluster() as (client, _):
        with pytest.raises(NotFound, match="search nope: is not known"):
            await client.get("nope")
        with pytest.raises(NotFound):
            await anext(client.watch("nope"))
        with pytest.raises(UserError, match="no-such-chip"):
            await submitted(client, chip="no-such-chip")
        with pytest.raises(UserError, match="evaluations"):
            await submitted(client, budget=Budget(evaluations=0))


@pytest.mark.parametrize("source", ["journal", "bus"])
@on_loop
async def test_an_exported_log_replays_to_the_same_tree(tmp_path, source):
    async with client_of_a_cluster() as (client, _):
        search_id = await submitted(client)
        async for _ in client.watch(search_id):
            pass
        path = tmp_path / "search.kelog"
        exported = await client.export_log(search_id, path, source=source)
        past = await history.open_past(path)
        report = replay.verify(past.entries, past.damaged)
        assert (past.search_id, report.entries) == (search_id, exported.entries)
        assert past.tree.winner_id == (await client.get(search_id)).winner_id
        assert [file.name for file in tmp_path.iterdir()] == ["search.kelog"]


@on_loop
async def test_an_export_that_fails_leaves_no_file(tmp_path):
    async with client_of_a_cluster() as (client, _):
        with pytest.raises(NotFound):
            await client.export_log("nope", tmp_path / "search.kelog")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(UserError, match="cannot be written"):
            await client.export_log("nope", tmp_path / "nowhere" / "search.kelog")


class Telling(Toy):
    """Tells of a recorded search, ``at_once`` entries per stream, and then says that it is stopping."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self.entries, self.at_once, self.asked = record().entries, at_once, []

    async def Watch(self, request, context):  # noqa: N802
        self.asked.append(request.from_seq)
        for entry in self.entries[request.from_seq :][: self.at_once]:
            answer = pb.WatchResponse(seq=entry.seq)
            answer.fact.ParseFromString(entry.event)
            for command in entry.commands:
                answer.decisions.add().ParseFromString(command)
            yield answer
        if request.from_seq + self.at_once < len(self.entries):
            raise Unavailable("the server is stopping")


@on_loop
async def test_a_watch_that_loses_its_stream_goes_on_after_the_last_entry_seen():
    toy = Telling(at_once=50)
    async with toy_server(toy) as address, open_client(ClientSettings(server=address)) as client:
        seen = [step.seq async for step in client.watch("s", from_seq=7)]
    assert seen == list(range(7, len(toy.entries)))
    assert toy.asked == list(range(7, len(toy.entries), 50))


@on_loop
async def test_a_watch_outlasts_its_server():
    toy, address = Telling(at_once=10), f"127.0.0.1:{free_port()}"
    async with open_client(ClientSettings(server=address, retry_pause_s=0.05)) as client:
        steps = client.watch("s")
        async with toy_server(toy, listen=address):
            assert (await anext(steps)).seq == 0
        further = asyncio.create_task(anext(steps))
        await asyncio.wait({further}, timeout=0.3)  # nobody is there
        async with toy_server(Telling(at_once=1000), listen=address):
            assert (await further).seq == 1
            assert [step.seq async for step in steps] == list(range(2, len(toy.entries)))


@on_loop
async def test_a_watch_of_a_server_that_was_never_there_is_unavailable():
    address = f"127.0.0.1:{free_port()}"
    async with open_client(ClientSettings(server=address, tries_max=1)) as client:
        with pytest.raises(Unavailable, match=address):
            await anext(client.watch("s"))
