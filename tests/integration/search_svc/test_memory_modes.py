"""A search and the real schedule synthesizer on one bus: what an expansion may remember changes what is written."""

from __future__ import annotations

import pytest

from search_svc import replay
from search_svc import service as search_service
from search_svc.settings import Settings
from shared import topics, wire
from shared.consume import ConsumeLimits
from shared.events import (
    CandidateProduced,
    EvaluationRequested,
    ExpansionRequested,
    Memory,
    OperatorRef,
    SearchFinished,
)
from shared.ports import open_ports
from shared.runtime import Service, Subscribe, running
from shared.settings import PortSettings
from synthesizer_svc import service as synthesizer_service
from synthesizer_svc.schedule.schedule import Schedule
from synthesizer_svc.settings import Settings as SynthesizerSettings
from synthesizer_svc.unknowing import NoKnowledge
from tests.aio import on_loop
from tests.builders import a_pass, a_search, enveloped, measured
from tests.unit.synthesizer_svc.spaces import OPERATOR, TextLowering

LIMITS = ConsumeLimits(poll_wait_s=0.01)
CHIP = "cpu-x86_64"


def evaluator(ports) -> Service:
    """Every schedule passes; its speedup is drawn from its own hash, so that it depends on nothing else."""

    async def evaluate(envelope):
        request = envelope.event
        assert isinstance(request, EvaluationRequested)
        ratio_ppm = 1_100_000 + int(request.kernel.schedule_hash[:4], 16) * 10
        await ports.bus.publish(topics.FACTS, wire.encode(enveloped(measured(request, a_pass(ratio_ppm)))))

    return Service(
        name="evaluator",
        subscriptions=(Subscribe(topic=topics.evaluation_requests(CHIP), group="evaluator", handler=evaluate),),
    )


async def search(**changes):
    """A whole search; its tree, its requests by expansion, its candidates, and the schedule of each kernel."""
    async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
        lowerings = {"cpp": TextLowering()}
        synthesizer = synthesizer_service.build(ports, SynthesizerSettings(), NoKnowledge(), lowerings=lowerings)
        searcher = search_service.build(ports, Settings())
        operator = OperatorRef(name="twice", source_hash=await ports.store.blobs.put(OPERATOR.encode()))
        async with running([searcher, synthesizer, evaluator(ports)], ports, LIMITS):
            started = a_search(operator=operator, **changes)
            await search_service.submit(ports, started)
            async with ports.bus.subscribe(topics.FACTS, "watch") as facts:
                event = None
                while not isinstance(event, SearchFinished):
                    delivery = await facts.poll(1.0)
                    event = wire.decode(delivery.record).event if delivery else None
        entries = [entry async for entry in ports.store.journal.read(started.search_id)]
        commands = [wire.unpack(command).event for entry in entries for command in entry.commands]
        candidates = [fact.event for fact in replay.inputs(entries) if isinstance(fact.event, CandidateProduced)]
        schedules = {
            candidate.candidate_id: dict(
                Schedule.from_json(await ports.store.blobs.get(candidate.kernel.schedule_hash)).choices
            )
            for candidate in candidates
        }
    requests = {event.expansion_id: event for event in commands if isinstance(event, ExpansionRequested)}
    return requests, candidates, schedules


@on_loop
async def test_a_crossover_takes_every_decision_from_one_of_its_two_parents():
    requests, candidates, schedules = await search(policy="evolve", evaluations=24, parameters={"crossover": 1})
    crossed = [candidate for candidate in candidates if candidate.move.name == "crossover"]
    assert crossed
    for candidate in crossed:
        first, second = (schedules[parent] for parent in requests[candidate.expansion_id].parent_ids)
        assert all(value in (first[key], second[key]) for key, value in schedules[candidate.candidate_id].items())


@pytest.mark.parametrize(
    ("policy", "parameters"), [("greedy", {}), ("beam", {}), ("mcts", {"widening": 3}), ("evolve", {})]
)
@on_loop
async def test_each_candidate_has_seen_what_the_memory_mode_of_its_expansion_shows(policy, parameters):
    requests, candidates, _ = await search(policy=policy, parameters=parameters, evaluations=20)
    modes = {request.memory for request in requests.values()}
    assert {Memory.CLEAN, Memory.PARENT, Memory.PARENT_AND_SIBLINGS} <= modes
    for candidate in candidates:
        request, context = requests[candidate.expansion_id], candidate.context
        assert context.memory is request.memory
        assert context.sibling_ids == request.sibling_ids
        is_draft = candidate.move.name.startswith("draft:")
        assert is_draft == (request.memory in (Memory.CLEAN, Memory.SIBLINGS))
        if request.memory in (Memory.CLEAN, Memory.PARENT):
            assert not context.sibling_ids
        if request.memory is Memory.CLEAN:
            assert not context.negative_ids
    with_siblings = [r for r in requests.values() if r.memory is Memory.PARENT_AND_SIBLINGS and len(r.parent_ids) == 1]
    assert any(request.sibling_ids for request in with_siblings)
