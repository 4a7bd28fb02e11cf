"""A search and the real schedule synthesizer on one bus: what an expansion may remember changes what is written."""

from __future__ import annotations

import pytest

from shared import ids
from shared.events import Memory
from tests.aio import on_loop
from tests.fakes.closed_loop import search

MIXED = {"crossover": 1, "islands": 1, "population": 16, "tournament": 1}
"""Parents from all over the tree: near relatives leave nothing new to cross in a space this small."""


def by_hash(choices):
    """A speedup that depends on the schedule alone and has no structure to learn."""
    return 1_100_000 + int(ids.derive(*map(str, choices.values()))[:4], 16) * 10


@on_loop
async def test_a_crossover_takes_every_decision_from_one_of_its_two_parents():
    run = await search(by_hash, policy="evolve", parameters=MIXED, evaluations=24, expansions_in_flight=1)
    crossed = [candidate for candidate in run.candidates if candidate.move.name == "crossover"]
    assert crossed
    for candidate in crossed:
        first, second = (run.schedules[parent] for parent in run.requests[candidate.expansion_id].parent_ids)
        assert all(value in (first[key], second[key]) for key, value in run.schedules[candidate.candidate_id].items())


@pytest.mark.parametrize(
    ("policy", "parameters"), [("greedy", {}), ("beam", {"width": 1}), ("mcts", {"widening": 3}), ("evolve", {})]
)
@on_loop
async def test_each_candidate_has_seen_what_the_memory_mode_of_its_expansion_shows(policy, parameters):
    run = await search(by_hash, policy=policy, parameters=parameters, evaluations=20, expansions_in_flight=1)
    modes = {request.memory for request in run.requests.values()}
    assert {Memory.CLEAN, Memory.PARENT, Memory.PARENT_AND_SIBLINGS} <= modes
    for candidate in run.candidates:
        request, context = run.requests[candidate.expansion_id], candidate.context
        assert context.memory is request.memory
        assert context.sibling_ids == request.sibling_ids
        assert candidate.move.name.startswith("draft:") == (request.memory in (Memory.CLEAN, Memory.SIBLINGS))
        if request.memory in (Memory.CLEAN, Memory.PARENT):
            assert not context.sibling_ids
        if request.memory is Memory.CLEAN:
            assert not context.negative_ids
    assert any(r.sibling_ids for r in run.requests.values() if r.memory is Memory.PARENT_AND_SIBLINGS)
