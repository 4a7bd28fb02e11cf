"""Synthesizer and evaluator of the simulated world: slow, unreliable, and memoising by request as the real ones do."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from shared import ids
from shared.events import Envelope, EvaluationRequested, Event, ExpansionRequested, Status
from tests.builders import SECOND_NS, a_failure, enveloped, measured
from tests.fakes.landscape import Landscape
from tests.sim.faults import Faults, FaultyBus, reply

LATENCIES_S = (2, 8, 30)
NOISE = 0.1
"""Chance that a measurement did not count."""


class Workers:
    """Handlers of both services. ``memo`` outlives crashes; ``effects`` counts what was really run, by request id."""

    def __init__(self, bus: FaultyBus, faults: Faults, landscape: Landscape) -> None:
        self._bus, self._faults, self._landscape = bus, faults, landscape
        self.memo: dict[str, list[Event]] = {}
        self.effects: list[str] = []

    async def synthesize(self, envelope: Envelope) -> None:
        request = envelope.event
        assert isinstance(request, ExpansionRequested)
        if request.expansion_id not in self.memo:
            await self._work(request.expansion_id)
            self.memo[request.expansion_id] = self._stamped(self._landscape.synthesize(request))
        await self._answer(self.memo[request.expansion_id])

    async def evaluate(self, envelope: Envelope) -> None:
        request = envelope.event
        assert isinstance(request, EvaluationRequested)
        if request.evaluation_id not in self.memo:
            await self._work(request.evaluation_id)
            self.memo[request.evaluation_id] = self._stamped([self._verdict(request)])
        await self._answer(self.memo[request.evaluation_id])

    def _verdict(self, request: EvaluationRequested) -> Event:
        rng = ids.stream(1, request.evaluation_id, "noise")
        if rng.random() < NOISE:
            return measured(request, a_failure(rng.choice((Status.NOISY, Status.INFRASTRUCTURE))))
        return self._landscape.evaluate(request)

    async def _work(self, request_id: str) -> None:
        self.effects.append(request_id)
        await asyncio.sleep(self._faults.rng.choice(LATENCIES_S))
        await self._faults.point()

    async def _answer(self, events: list[Event]) -> None:
        for event in events:
            await reply(self._bus, enveloped(event))

    def _stamped(self, events: list[Event]) -> list[Event]:
        now_ns = int(asyncio.get_running_loop().time()) * SECOND_NS
        return [replace(event, at_ns=now_ns) for event in events]
