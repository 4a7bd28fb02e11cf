"""Search, schedule synthesizer and knowledge as they are, on one bus; the evaluator is told what schedules cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from knowledge_svc.service import KnowledgeService
from search_svc import replay
from search_svc import service as search_service
from search_svc.settings import Settings as SearchSettings
from shared import topics, wire
from shared.consume import ConsumeLimits
from shared.events import (
    Bound,
    CandidateProduced,
    Diagnosis,
    Envelope,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionRequested,
    OperatorRef,
    SearchFinished,
)
from shared.knowledge import Knowledge
from shared.ports import Ports, open_ports
from shared.runtime import running
from shared.service import Service, Subscribe
from shared.settings import PortSettings
from shared.store import JournalEntry
from synthesizer_svc import service as synthesizer_service
from synthesizer_svc.model import Model
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.schedule.schedule import Schedule, Value
from synthesizer_svc.settings import Settings as SynthesizerSettings
from tests.builders import a_pass, a_search, enveloped, measured
from tests.unit.synthesizer_svc.spaces import OPERATOR, TextLowering

CHIP = "cpu-x86_64"
LIMITS = ConsumeLimits(poll_wait_s=0.01)
Choices = Mapping[str, Value]
Cost = Callable[[Choices], int]
"""Speedup in millionths of a kernel with these choices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished search. ``schedules`` maps a candidate to its choices."""

    facts: tuple[Event, ...]
    requests: Mapping[str, ExpansionRequested]
    schedules: Mapping[str, Choices]
    entries: Sequence[JournalEntry] = ()

    @property
    def candidates(self) -> list[CandidateProduced]:
        return [fact for fact in self.facts if isinstance(fact, CandidateProduced)]

    def best_after(self, verdicts: int) -> int:
        """Largest speedup, in millionths, among the first ``verdicts``."""
        found = [fact.evaluation.speedup() for fact in self.facts if isinstance(fact, EvaluationCompleted)]
        return max(speedup.ratio_ppm for speedup in found[:verdicts])


async def search(
    cost: Cost,
    *,
    knowledge: Callable[[Ports], tuple[Service, KnowledgeService]] | None = None,
    model: Model | None = None,
    settings: SynthesizerSettings | None = None,
    **changes,
) -> Run:
    """Run a search to its end; without ``knowledge`` nobody knows anything and nobody learns, without ``model``
    schedules write alone.
    """
    async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
        services: list[Service] = []
        knows: Knowledge = NoKnowledge()
        if knowledge is not None:
            service, knows = knowledge(ports)
            services.append(service)
        lowerings = {"cpp": TextLowering()}
        chosen = settings or SynthesizerSettings()
        services.append(synthesizer_service.build(ports, chosen, knows, lowerings=lowerings, model=model))
        services += [_evaluator(ports, cost), search_service.build(ports, SearchSettings())]
        operator = OperatorRef(name="twice", source_hash=await ports.store.blobs.put(OPERATOR.encode()))
        started = a_search(operator=operator, **changes)
        async with running(services, ports, LIMITS):
            await search_service.submit(ports, started)
            await _finished(ports)
        entries = [entry async for entry in ports.store.journal.read(started.search_id)]
        facts = tuple(fact.event for fact in replay.inputs(entries))
        commands = [wire.unpack(command).event for entry in entries for command in entry.commands]
        return Run(
            facts=facts,
            entries=entries,
            requests={event.expansion_id: event for event in commands if isinstance(event, ExpansionRequested)},
            schedules={
                fact.candidate_id: await _choices(ports, fact.kernel.schedule_hash)
                for fact in facts
                if isinstance(fact, CandidateProduced)
            },
        )


def _evaluator(ports: Ports, cost: Cost) -> Service:
    async def evaluate(envelope: Envelope) -> None:
        request = envelope.event
        assert isinstance(request, EvaluationRequested)
        passed = a_pass(cost(await _choices(ports, request.kernel.schedule_hash)), spread_ppm=10_000)
        verdict = measured(request, replace(passed, diagnosis=Diagnosis(bound=Bound.MEMORY)))
        await ports.bus.publish(topics.FACTS, wire.encode(enveloped(verdict)))

    subscription = Subscribe(topic=topics.evaluation_requests(CHIP), group="evaluator", handler=evaluate)
    return Service(name="evaluator", subscriptions=(subscription,))


async def _choices(ports: Ports, schedule_hash: str) -> Choices:
    """None for a kernel that no schedule wrote."""
    if not schedule_hash:
        return {}
    return dict(Schedule.from_json(await ports.store.blobs.get(schedule_hash)).choices)


async def _finished(ports: Ports) -> None:
    """Wait for the end of the search, and for whoever else hears its facts to have heard them."""
    async with ports.bus.subscribe(topics.FACTS, "watch") as facts:
        event = None
        while not isinstance(event, SearchFinished):
            delivery = await facts.poll(1.0)
            event = wire.decode(delivery.record).event if delivery else None
