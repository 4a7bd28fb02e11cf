"""A search service among others: nothing is lost between caller and journal, and any replica answers for any search."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from protos.events.v1 import search_pb2, values_pb2
from protos.search.v1 import search_service_pb2 as pb
from search_svc import grpc_api, recompute, replay, replica
from search_svc.index import PAUSED
from search_svc.submissions import OPEN, Submissions
from shared import envelopes, topics, wire
from shared.errors import AlreadyExists, ChipError, NotFound, OperatorError, UserError
from shared.events import CapacityAnnounced, EvaluationCompleted, SearchResumed, WorkerState
from tests.aio import on_loop
from tests.fakes.lab import TOKENS
from tests.integration.search_svc.replica import OPERATOR, QUICK, a_request, alive, fresh_ports, with_empty_bus


async def entries_of(ports, search_id):
    return [entry async for entry in ports.store.journal.read(search_id)]


async def eventually(condition):
    while not await condition():
        await asyncio.sleep(0.005)


@on_loop
async def test_a_submitted_search_is_watched_to_its_end_and_then_listed_as_finished():
    async with alive(await fresh_ports()) as cluster:
        search_id = await cluster.submit(evaluations=24)
        seen = await cluster.until_finished(search_id)
        assert [response.seq for response in seen] == list(range(len(seen)))
        assert any(decision.type.endswith("SearchFinished") for decision in seen[-1].decisions)
        found = await cluster.get(search_id)
        assert (found.phase, found.outcome, found.charged, found.operator_name) == (
            "finished",
            "improved",
            24,
            "increment",
        )
        assert found.winner_low_ppm > 1_000_000
        listed = await cluster.api.List(pb.ListRequest(phase="finished"), None)
        assert [(s.search_id, s.outcome, s.winner_id) for s in listed.searches] == [
            (search_id, "improved", found.winner_id)
        ]
        assert await cluster.ports.store.documents.get(OPEN, search_id) is None


@on_loop
async def test_a_watch_goes_on_where_the_last_one_ended():
    async with alive(await fresh_ports()) as cluster:
        search_id = await cluster.submit()
        seen = await cluster.until_finished(search_id)
        for begin in (0, 3, len(seen) - 1, len(seen), len(seen) + 5):
            request = pb.WatchRequest(search_id=search_id, from_seq=begin)
            assert [response.seq async for response in cluster.api.Watch(request, None)] == list(
                range(begin, len(seen))
            )


@on_loop
async def test_the_same_request_never_starts_a_second_search_and_another_one_under_its_id_is_refused():
    async with alive(await fresh_ports()) as cluster:
        first = await cluster.api.Submit(a_request(client_request_id="r"), None)
        again = await cluster.api.Submit(a_request(client_request_id="r"), None)
        assert (again.search_id, first.created, again.created) == (first.search_id, True, False)
        with pytest.raises(AlreadyExists, match="client_request_id r"):
            await cluster.api.Submit(a_request(client_request_id="r", seed=1), None)
        await cluster.until_finished(first.search_id)
        late = await cluster.api.Submit(a_request(client_request_id="r"), None)
        assert (late.search_id, late.created) == (first.search_id, False)
        assert len((await cluster.api.List(pb.ListRequest(), None)).searches) == 1


@on_loop
async def test_a_search_whose_budget_is_spent_pauses_is_listed_so_and_goes_on_with_a_larger_one():
    async with alive(await fresh_ports()) as cluster:
        budget = search_pb2.Budget(evaluations=24, model=values_pb2.ModelBudget(tokens=2 * TOKENS))
        search_id = await cluster.submit(budget=budget)

        async def waits() -> bool:
            return (await cluster.get(search_id)).phase == "paused"

        await eventually(waits)
        found = await cluster.get(search_id)
        assert await Submissions(cluster.ports, cluster.parts.index).open_count() == 0, "it wants nothing of the pool"
        assert (found.reason, found.outcome) == ("budget", "")
        assert "200 tokens is spent" in found.detail
        assert 0 < found.charged < 24
        listed = await cluster.api.List(pb.ListRequest(phase="paused"), None)
        assert [row.search_id for row in listed.searches] == [search_id]

        more = pb.ResumeRequest(search_id=search_id, model_budget=values_pb2.ModelBudget(tokens=50 * TOKENS))
        await cluster.api.Resume(more, None)
        await cluster.until_finished(search_id)
        found = await cluster.get(search_id)
        assert (found.phase, found.charged, found.model_budget.tokens) == ("finished", 24, 50 * TOKENS)
        assert [key async for key, _ in cluster.ports.store.documents.scan(PAUSED)] == []
        entries = await entries_of(cluster.ports, search_id)
        assert replay.verify(entries).tree.finished
        assert sum(isinstance(wire.unpack(entry.event).event, SearchResumed) for entry in entries) == 1


@on_loop
async def test_the_wish_to_go_on_outlives_the_broker():
    ports = await fresh_ports()
    async with alive(ports) as cluster:
        budget = search_pb2.Budget(evaluations=8, model=values_pb2.ModelBudget(tokens=2 * TOKENS))
        search_id = await cluster.submit(budget=budget)

        async def waits() -> bool:
            return (await cluster.get(search_id)).phase == "paused"

        await eventually(waits)
    ports = with_empty_bus(ports)
    async with ports.bus:
        parts = replica.assemble(ports, QUICK)
        more = pb.ResumeRequest(search_id=search_id, model_budget=values_pb2.ModelBudget(tokens=50 * TOKENS))
        await parts.api.Resume(more, None)
    async with alive(with_empty_bus(ports)) as cluster:
        await cluster.until_finished(search_id)
        assert (await cluster.get(search_id)).charged == 8


@on_loop
async def test_only_a_paused_search_can_be_resumed():
    async with alive(await fresh_ports()) as cluster:
        search_id = await cluster.submit()
        await cluster.until_finished(search_id)
        with pytest.raises(UserError, match="is not paused"):
            await cluster.api.Resume(pb.ResumeRequest(search_id=search_id), None)
        with pytest.raises(NotFound):
            await cluster.api.Resume(pb.ResumeRequest(search_id="0123456789abcdef"), None)


@on_loop
async def test_a_request_without_an_id_is_a_search_of_its_own_each_time():
    async with alive(await fresh_ports()) as cluster:
        one, two = [await cluster.api.Submit(a_request(), None) for _ in range(2)]
        assert one.search_id != two.search_id


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"operator": pb.OperatorSource(name="x", source="class Model")}, OperatorError, "syntax error"),
        ({"chip": "abacus"}, ChipError, "unknown chip `abacus`"),
        ({"policy": "psychic"}, UserError, "psychic"),
        ({"evaluations": 0}, UserError, "evaluations must be at least 1"),
        ({"baseline": "worst"}, UserError, "unknown baseline"),
        ({"threads": -1}, UserError, "threads must be at least 1"),
        ({"operator": pb.OperatorSource(name="n" * 10**6, source=OPERATOR)}, UserError, "at most 500"),
        ({"client_request_id": "r" * 10**6}, UserError, "at most 500"),
        ({"candidates_per_expansion": 2**40}, UserError, "candidates per expansion must be at most 64"),
        ({"evaluations": 2**62}, UserError, "evaluations must be at most 40000"),
        ({"priority": 2**40}, UserError, "priority must be -2147483648 to 2147483647"),
    ],
)
@on_loop
async def test_a_search_that_cannot_run_is_refused_and_leaves_nothing(changes, error, words):
    async with alive(await fresh_ports()) as cluster:
        with pytest.raises(error, match=words):
            await cluster.api.Submit(a_request(**changes), None)
        assert [s async for s in cluster.ports.store.documents.scan(OPEN)] == []
        assert not (await cluster.api.List(pb.ListRequest(), None)).searches


@on_loop
async def test_what_is_not_known_is_not_found():
    async with alive(await fresh_ports()) as cluster:
        for call in (
            cluster.api.Get(pb.GetRequest(search_id="nobody"), None),
            cluster.api.Cancel(pb.CancelRequest(search_id="nobody"), None),
            cluster.api.GetTree(pb.GetTreeRequest(search_id="nobody"), None),
            anext(cluster.api.Watch(pb.WatchRequest(search_id="nobody"), None)),
            anext(cluster.api.ExportLog(pb.ExportLogRequest(search_id="nobody"), None)),
        ):
            with pytest.raises(NotFound, match="search nobody"):
                await call


@on_loop
async def test_a_submission_whose_publisher_died_is_found_by_the_sweeper():
    ports = await fresh_ports()
    async with alive(ports) as cluster:
        publish = ports.bus.publish

        async def dies(topic, record):
            raise ConnectionResetError

        ports.bus.publish = dies
        with pytest.raises(ConnectionResetError):
            await cluster.submit("r")
        ports.bus.publish = publish
        (search_id,) = await cluster.parts.submissions.open_searches()
        await cluster.until_finished(search_id)
        assert (await cluster.get(search_id)).charged == 8


@on_loop
async def test_a_broker_that_lost_everything_is_recovered_from_the_journal_without_measuring_twice():
    ports = await fresh_ports()
    async with alive(ports, deaf_after=4) as before:
        search_id = await before.submit(evaluations=10)

        async def stuck():
            facts = [wire.unpack(e.event).event for e in await entries_of(ports, search_id)]
            return sum(isinstance(fact, EvaluationCompleted) for fact in facts) >= 4

        await eventually(stuck)
    facts = [wire.unpack(e.event).event for e in await entries_of(ports, search_id)]
    known = {fact.evaluation_id for fact in facts if isinstance(fact, EvaluationCompleted)}
    async with alive(with_empty_bus(ports)) as after:
        await after.until_finished(search_id)
        tree = replay.verify(await entries_of(ports, search_id)).tree
        assert (tree.finished, tree.charged) == (True, 10)
        assert known.isdisjoint(after.lab.measured)


@on_loop
async def test_a_cancelled_search_ends_even_when_the_broker_lost_the_wish():
    ports = await fresh_ports()
    async with alive(ports, deaf_after=2) as cluster:
        search_id = await cluster.submit(evaluations=10)

        async def begun():
            return bool(await entries_of(ports, search_id))

        await eventually(begun)
        publish = ports.bus.publish

        async def loses(topic, record):
            """Acknowledged, and gone with the broker."""

        ports.bus.publish = loses
        await cluster.api.Cancel(pb.CancelRequest(search_id=search_id, reason="enough"), None)
        ports.bus.publish = publish
        await cluster.until_finished(search_id)
        assert (await cluster.get(search_id)).outcome == "cancelled"
        await cluster.api.Cancel(pb.CancelRequest(search_id=search_id), None)


@on_loop
async def test_the_log_recomputed_from_the_bus_is_the_journal_byte_for_byte():
    ports = await fresh_ports()
    async with alive(ports) as cluster:
        search_id = await cluster.submit()
        await cluster.until_finished(search_id)
        recorded = tuple(await entries_of(ports, search_id))
        facts = [wire.decode(d.record) async for d in ports.bus.history(topics.FACTS, search_id)]
        made = recompute.journal(facts, recorded)
        assert made.from_journal == 0
        assert [entry.digest for entry in made.entries] == [entry.digest for entry in recorded]
        assert recompute.journal(facts, ()).entries == made.entries


@pytest.mark.parametrize("lost", ["the beginning", "something in the middle", "everything"])
@on_loop
async def test_what_the_bus_no_longer_holds_comes_from_the_journal(lost):
    ports = await fresh_ports()
    async with alive(ports) as cluster:
        search_id = await cluster.submit()
        await cluster.until_finished(search_id)
        recorded = tuple(await entries_of(ports, search_id))
        facts = [wire.decode(d.record) async for d in ports.bus.history(topics.FACTS, search_id)]
        kept = {"the beginning": facts[5:], "something in the middle": facts[:3] + facts[8:], "everything": []}[lost]
        made = recompute.journal(kept, recorded)
        assert made.from_journal > 0
        assert [entry.digest for entry in made.entries] == [entry.digest for entry in recorded]


@on_loop
async def test_the_tree_is_paged_best_first_and_whole():
    async with alive(await fresh_ports()) as cluster:
        search_id = await cluster.submit()
        await cluster.until_finished(search_id)
        nodes, token = [], ""
        while True:
            page = await cluster.api.GetTree(
                pb.GetTreeRequest(search_id=search_id, page_size=3, page_token=token), None
            )
            nodes += page.nodes
            token = page.next_page_token
            if not token:
                break
        tree = replay.rebuild(await entries_of(cluster.ports, search_id))
        assert sorted(node.candidate_id for node in nodes) == sorted(tree.nodes)
        speedups = [node.speedup_ppm for node in nodes]
        assert speedups == sorted(speedups, reverse=True)


@on_loop
async def test_a_list_is_paged_newest_first_and_filtered():
    async with alive(await fresh_ports()) as cluster:
        ids = [await cluster.submit(f"r{n}", evaluations=2) for n in range(5)]
        for search_id in ids:
            await cluster.until_finished(search_id)
        found, token = [], ""
        while True:
            page = await cluster.api.List(pb.ListRequest(page_size=2, page_token=token), None)
            found += [search.search_id for search in page.searches]
            token = page.next_page_token
            if not token:
                break
        assert found == ids[::-1]
        assert not (await cluster.api.List(pb.ListRequest(phase="searching"), None)).searches
        assert not (await cluster.api.List(pb.ListRequest(chip="riscv-rvv"), None)).searches
        for bad, words in ((pb.ListRequest(page_token="!"), "page_token"), (pb.ListRequest(phase="x"), "phase")):
            with pytest.raises(UserError, match=words):
                await cluster.api.List(bad, None)


@on_loop
async def test_a_filter_that_fits_little_looks_at_so_many_searches_a_call(monkeypatch):
    monkeypatch.setattr(grpc_api, "ROWS_PER_CALL_MAX", 2)
    async with alive(await fresh_ports(), deaf_after=0) as cluster:
        for number in range(5):
            await cluster.submit(f"r{number}", chip="simulated" if number == 0 else "cpu-x86_64")
        pages, token = [], ""
        while token or not pages:
            answer = await cluster.api.List(pb.ListRequest(chip="simulated", page_token=token), None)
            pages.append(len(answer.searches))
            token = answer.next_page_token
        assert pages == [0, 0, 1]


@on_loop
async def test_many_submissions_count_the_open_searches_once_and_are_counted_themselves():
    ports = await fresh_ports()
    async with alive(ports, replace(QUICK, sweep_s=3600.0), deaf_after=0) as cluster:
        counted, open_searches = [], cluster.parts.submissions.open_searches

        async def counting():
            counted.append(1)
            return await open_searches()

        cluster.parts.submissions.open_searches = counting
        for number in range(4):
            await cluster.submit(f"r{number}")
        assert len(counted) == 1
        assert await cluster.parts.submissions.open_count() == 4


@on_loop
async def test_pools_are_what_their_workers_announced_lately():
    async with alive(await fresh_ports()) as cluster:
        now_ns = cluster.ports.clock.now_ns()

        async def announce(worker, state, slots=4, at_ns=now_ns):
            event = CapacityAnnounced(worker_id=worker, chip="simulated", slots=slots, state=state, at_ns=at_ns)
            envelope = envelopes.envelope(
                event, cause_id=f"{worker}{at_ns}{state}", source="/t", clock=cluster.ports.clock
            )
            await cluster.parts.pools.on_announcement(envelope)

        await announce("w1", WorkerState.READY)
        await announce("w2", WorkerState.DRAINING)
        await announce("w3", WorkerState.READY, at_ns=now_ns - 3600 * 10**9)
        (pool,) = (await cluster.api.ListPools(pb.ListPoolsRequest(), None)).pools
        assert (pool.chip, pool.workers, pool.slots, pool.draining) == ("simulated", 2, 4, 1)
        await announce("w1", WorkerState.GONE, at_ns=now_ns + 1)
        await announce("w2", WorkerState.READY, at_ns=now_ns - 1)  # older news, delivered late
        (pool,) = (await cluster.api.ListPools(pb.ListPoolsRequest(), None)).pools
        assert (pool.workers, pool.slots, pool.draining) == (1, 0, 1)


@on_loop
async def test_a_damaged_journal_stops_its_own_search_and_no_other():
    ports = await fresh_ports()
    async with alive(ports, deaf_after=0) as cluster:
        broken = await cluster.submit("r1")

        async def begun():
            return len(await entries_of(ports, broken)) > 2

        await eventually(begun)
        journal = ports.store.journal._streams[broken]
        journal[1] = type(journal[1])(**{f: getattr(journal[1], f) for f in journal[1].__slots__} | {"digest": "x"})
    async with alive(ports) as cluster:
        sound = await cluster.submit("r2")
        await cluster.until_finished(sound)
        assert (await cluster.get(sound)).charged == 8
