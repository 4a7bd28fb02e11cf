"""A search that begins from schedules of other chips: when they are asked for, and that it replays by itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from search_svc import export, replay
from shared.adapters import open_store
from shared.events import ExpansionRequested, OperatorRef, Prior
from tests.builders import a_search, enveloped, expansion_failed
from tests.fakes.drive import Drive
from tests.fakes.landscape import Clockless, Landscape


def a_prior(n: int) -> Prior:
    return Prior(
        search_id=f"s{n}",
        candidate_id=f"c{n}",
        chip=f"chip-{n}",
        language="triton",
        kernel_id=f"k{n}",
        schedule_hash=f"h{n}",
    )


def driven(number: int = 1, *, landscape: Landscape | None = None, order_seed: int = 1, **changes) -> Drive:
    drive = Drive(landscape=landscape or Landscape(), order_seed=order_seed)
    drive.run(a_search(priors=tuple(a_prior(n) for n in range(number)), **changes))
    return drive


def asked(drive: Drive) -> list[ExpansionRequested]:
    return [expansion.request for expansion in drive.tree.expansions.values()]


@pytest.mark.parametrize("order_seed", range(5))
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_after_one_draft_of_its_own_each_prior_is_asked_for_once(number, order_seed):
    requests = asked(driven(number, order_seed=order_seed))
    assert requests[0].priors == ()
    assert requests[0].parent_ids == ()
    seeding = [request for request in requests if request.priors]
    assert [prior for request in seeding for prior in request.priors] == [a_prior(n) for n in range(number)]
    assert all(request.count == len(request.priors) and not request.parent_ids for request in seeding)


def test_the_first_draft_is_there_before_a_prior_is_asked_for_so_that_costs_are_compared_with_it():
    drive = driven(landscape=Clockless())
    first, *_ = asked(drive)
    assert drive.tree.nodes[drive.tree.reference.candidate_id].expansion_id == first.expansion_id


@pytest.mark.parametrize("evaluations", [2, 3, 4])
def test_a_small_budget_has_room_for_the_priors(evaluations):
    requests = asked(driven(1, evaluations=evaluations))
    assert sum(len(request.priors) for request in requests) == 1
    assert sum(request.count for request in requests) >= evaluations


def test_a_first_expansion_that_fails_does_not_hold_the_priors_back():
    drive = Drive()
    (first,) = drive.take(enveloped(a_search(priors=(a_prior(0),))))
    drive.waiting.clear()
    commands = drive.take(enveloped(expansion_failed(first.event, "endpoint", "gone")))
    assert commands[0].event.priors == (a_prior(0),)


def test_a_search_without_priors_asks_as_ever():
    assert len(Drive().take(enveloped(a_search()))) == 2


@pytest.mark.parametrize("policy", ["greedy", "beam", "mcts", "evolve"])
def test_a_seeded_search_replays_identically_under_every_policy(policy):
    drive = driven(2, policy=policy, evaluations=30)
    assert replay.verify(drive.entries).entries == len(drive.entries)
    assert replay.rebuild(drive.entries) == drive.tree


def test_a_fork_keeps_the_priors_and_asks_for_none_twice():
    drive = driven(2)
    prefix, envelope = replay.fork(drive.entries, at_seq=12, search_id="fork", policy="mcts", seed=3)
    tree = replay.rebuild(prefix)
    before = [prior for each in tree.expansions.values() for prior in each.request.priors]
    other = Drive(tree=tree, entries=list(prefix))
    other.take(enveloped(envelope.event))
    other.finish()
    after = [prior for each in other.tree.expansions.values() for prior in each.request.priors]
    assert before == after == [a_prior(0), a_prior(1)]


def test_an_exported_log_holds_the_schedules_it_began_from():
    async def scenario():
        async with open_store("memory:") as store:
            reference, schedule = await store.blobs.put(b"class Model: ..."), await store.blobs.put(b"{}")
            drive = Drive()
            operator = OperatorRef(name="toy", source_hash=reference)
            drive.take(enveloped(a_search(operator=operator, priors=(replace(a_prior(0), schedule_hash=schedule),))))
            return await export.blobs_named(store.blobs, drive.entries)

    assert list(asyncio.run(scenario()).values()) == [b"class Model: ...", b"{}"]
