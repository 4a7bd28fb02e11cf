"""synthesizer_svc: answers every expansion request with its candidates.

Crash model: an answer is stored under the id of its expansion *before* it is published, and event ids derive from the
request. A request delivered again publishes what was told once more, in the order in which it was, and writes what is
still open; consumers dedupe by id. Of several replicas that write for one expansion the first one's answer to an index
stands, and all of them give that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from shared import envelopes, topics, tracing, wire
from shared.bus import Bus
from shared.clock import Clock
from shared.errors import Poison
from shared.events import CandidateProduced, CandidateRejected, Envelope, ExpansionFailed, ExpansionRequested
from shared.knowledge import Knowledge
from shared.machine import processor
from shared.ports import Ports
from shared.service import Service, Servicer, Subscribe
from shared.store import Documents
from shared.trial_build import TrialBuild
from synthesizer_svc import exported
from synthesizer_svc.answered import Answered
from synthesizer_svc.expand import Expander, Fact
from synthesizer_svc.generate import Generator
from synthesizer_svc.model import Model, ModelErrorCode
from synthesizer_svc.model.budgeted import END, BudgetSettings
from synthesizer_svc.model.opening import Opened, open_model
from synthesizer_svc.model.tokenizer import open_tokenizer
from synthesizer_svc.schedule.captured import CapturedLowering
from synthesizer_svc.schedule.emit import EMITTERS
from synthesizer_svc.schedule.lowering import Lowering
from synthesizer_svc.settings import Limits, Settings

NAME = "synthesizer"
SOURCE = "/synthesizer"
SERVICER = "protos.synthesizer.v1.SynthesizerService"


class Synthesizer:
    """The handler: remembers, publishes."""

    def __init__(
        self, *, expander: Expander, documents: Documents, bus: Bus, clock: Clock, budget: BudgetSettings
    ) -> None:
        """``budget`` says whether a search pauses or ends when no money is left to write with."""
        self._expander, self._documents, self._bus, self._clock = expander, documents, bus, clock
        self._ends_when_spent = budget.when_spent == END

    async def handle(self, envelope: Envelope) -> None:
        """Answer one request; answering it again publishes the same events.

        Raises:
            Poison: not an expansion request, or one that refers to what does not exist.
        """
        request = envelope.event
        if not isinstance(request, ExpansionRequested):
            raise Poison(f"{type(request).__name__} on {topics.SYNTHESIS_REQUESTS}")
        answered = Answered(self._documents, request)
        await answered.read()
        await self._publish(answered.told)
        if answered.complete:
            return
        turn = asyncio.Lock()

        async def tell(facts: tuple[Fact, ...]) -> None:
            async with turn:
                told, own = await answered.add([self._wrap(envelope, self._final(fact)) for fact in facts])
                await self._publish(told)
            for answer in own:
                exported.answered(_fact(answer))

        await self._expander.expand(request, tell, [_fact(answer) for answer in answered.told])

    async def _publish(self, told: Iterable[Envelope]) -> None:
        for answer in told:
            await self._bus.publish(envelopes.topic_of(answer.event), wire.encode(answer))

    def _final(self, fact: Fact) -> Fact:
        """A pause for want of money is the end, where that was chosen: the search closes with what it found."""
        if self._ends_when_spent and isinstance(fact, ExpansionFailed) and fact.code == ModelErrorCode.BUDGET:
            return replace(fact, pauses=False)
        return fact

    def _wrap(self, cause: Envelope, fact: Fact) -> Envelope:
        return envelopes.envelope(
            fact,
            cause_id=cause.id,
            source=SOURCE,
            clock=self._clock,
            # The index, not the position among its type: it names the same candidate whatever the others became.
            n=getattr(fact, "index", 0),
            traceparent=tracing.onward(cause),
        )


def _fact(answer: Envelope) -> Fact:
    assert isinstance(answer.event, CandidateProduced | CandidateRejected | ExpansionFailed)
    return answer.event


def build(
    ports: Ports,
    settings: Settings,
    knowledge: Knowledge,
    *,
    lowerings: Mapping[str, Lowering] | None = None,
    model: Model | None = None,
    trials: TrialBuild | None = None,
) -> Service:
    """The service over open ports. ``lowerings`` and ``model`` stand in for the real ones; ``trials`` builds what a
    model wrote, before it is handed on.

    Raises:
        UserError: ``MODEL_URL`` or ``MODEL_ENDPOINTS`` names no usable model.
    """
    opened = Opened(model) if model else _open_model(ports, settings)
    tokenizer = None if model else open_tokenizer(settings.endpoints)
    if lowerings is None:
        lowerings = _lowerings(settings.limits)
    expander = Expander(
        blobs=ports.store.blobs,
        knowledge=knowledge,
        lowerings=lowerings,
        model=opened.model,
        processor=processor(),
        clock=ports.clock,
        settings=settings,
        trials=trials,
        tokenizer=tokenizer,
        documents=ports.store.documents,
    )

    async def close() -> None:
        if opened.close:
            await opened.close()
        if tokenizer:
            await tokenizer.close()

    generator = Generator(expander, ports.store)
    synthesizer = Synthesizer(
        expander=expander,
        documents=ports.store.documents,
        bus=ports.bus,
        clock=ports.clock,
        budget=settings.budget,
    )
    return Service(
        name=NAME,
        subscriptions=(
            Subscribe(
                topic=topics.SYNTHESIS_REQUESTS,
                group=NAME,
                handler=synthesizer.handle,
                members=settings.limits.members,
                in_flight=settings.limits.in_flight,
            ),
        ),
        servicers=(Servicer(name=SERVICER, add=lambda server: _serve(generator, server)),),
        close=close,
    )


def _lowerings(limits: Limits) -> dict[str, Lowering]:
    """One for all languages: an operator is captured once."""
    captured = CapturedLowering(
        capture_s=limits.capture_s, operators_max=limits.operators_max, memory_mb=limits.capture_memory_mb
    )
    return dict.fromkeys(EMITTERS, captured)


def _open_model(ports: Ports, settings: Settings) -> Opened:
    return open_model(
        settings.model.url,
        settings.endpoints,
        ports=ports,
        retry=settings.retry,
        breaker=settings.breaker,
        budget=settings.budget,
    )


def _serve(generator: Generator, server: Any) -> None:
    from synthesizer_svc import grpc_api  # needs the extra `grpc`, which embedded programs may lack

    grpc_api.add(generator, server)
