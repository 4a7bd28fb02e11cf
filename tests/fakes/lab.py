"""Synthesizer and evaluator as services over a landscape, for searches on a real bus and store."""

from __future__ import annotations

from dataclasses import replace

from shared import envelopes, topics, wire
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    Envelope,
    EvaluationCompleted,
    EvaluationRequested,
    ExpansionRequested,
)
from shared.ports import Ports
from shared.service import Service, Subscribe
from tests.builders import enveloped
from tests.fakes.landscape import Landscape

CHIP = "cpu-x86_64"


class Lab:
    """``measured`` lists evaluation ids in the order they were really run; after ``deaf_after`` of them
    requests are taken and never answered, as by a process about to be killed."""

    def __init__(self, ports: Ports, landscape: Landscape | None = None) -> None:
        self._bus, self._clock, self._landscape = ports.bus, ports.clock, landscape or Landscape()
        self.measured: list[str] = []
        self.deaf_after: int | None = None

    def service(self) -> Service:
        return Service(
            name="lab",
            subscriptions=(
                Subscribe(topic=topics.SYNTHESIS_REQUESTS, group="synthesizer", handler=self._synthesize),
                Subscribe(topic=topics.evaluation_requests(CHIP), group="evaluator", handler=self._evaluate),
            ),
        )

    async def _synthesize(self, envelope: Envelope) -> None:
        assert isinstance(envelope.event, ExpansionRequested)
        for answer in self._landscape.synthesize(envelope.event):
            await self._reply(answer)

    async def _evaluate(self, envelope: Envelope) -> None:
        assert isinstance(envelope.event, EvaluationRequested)
        if self.deaf_after is not None and len(self.measured) >= self.deaf_after:
            return
        self.measured.append(envelope.event.evaluation_id)
        await self._reply(self._landscape.evaluate(envelope.event))

    async def _reply(self, answer: CandidateProduced | CandidateRejected | EvaluationCompleted) -> None:
        envelope = enveloped(replace(answer, at_ns=self._clock.now_ns()))
        await self._bus.publish(envelopes.topic_of(envelope.event), wire.encode(envelope))
