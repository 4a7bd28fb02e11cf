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
    ExpansionFailed,
    ExpansionRequested,
)
from shared.ports import Ports
from shared.service import Service, Subscribe
from tests.builders import enveloped, expansion_failed
from tests.fakes.landscape import Landscape

Answer = CandidateProduced | CandidateRejected | ExpansionFailed | EvaluationCompleted

CHIP = "cpu-x86_64"
TOKENS = 100


class Lab:
    """``measured`` lists evaluation ids in the order they were really run; after ``deaf_after`` of them
    requests are taken and never answered, as by a process about to be killed.

    An expansion costs ``TOKENS`` of its search's budget of models, where it has one, and is refused beyond that.
    """

    def __init__(self, ports: Ports, landscape: Landscape | None = None) -> None:
        self._bus, self._clock, self._landscape = ports.bus, ports.clock, landscape or Landscape()
        self.measured: list[str] = []
        self.deaf_after: int | None = None
        self.paid: dict[str, None] = {}

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
        request = envelope.event
        spent = TOKENS * (len(self.paid) + (request.expansion_id not in self.paid))
        if 0 < request.model_budget.tokens < spent:
            why = f"the search's budget of {request.model_budget.tokens} tokens is spent"
            await self._reply(expansion_failed(request, "budget", why, pauses=True))
            return
        self.paid[request.expansion_id] = None
        for answer in self._landscape.synthesize(request):
            await self._reply(answer)

    async def _evaluate(self, envelope: Envelope) -> None:
        assert isinstance(envelope.event, EvaluationRequested)
        if self.deaf_after is not None and len(self.measured) >= self.deaf_after:
            return
        self.measured.append(envelope.event.evaluation_id)
        await self._reply(self._landscape.evaluate(envelope.event))

    async def _reply(self, answer: Answer) -> None:
        envelope = enveloped(replace(answer, at_ns=self._clock.now_ns()))
        await self._bus.publish(envelopes.topic_of(envelope.event), wire.encode(envelope))
