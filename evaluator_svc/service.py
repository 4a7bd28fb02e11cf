"""evaluator_svc: answers every evaluation request with one verdict.

Crash model: a verdict is remembered before it is published, and the published event's id derives from the request's.
A request delivered again is answered from memory with the same event; consumers dedupe by id.
"""

from __future__ import annotations

from evaluator_svc.evaluate import Evaluator
from evaluator_svc.settings import Settings
from evaluator_svc.toolchains import Toolchain
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared import chips, envelopes, topics, wire
from shared.bus import Bus
from shared.clock import Clock
from shared.errors import ChipError, Poison
from shared.events import Envelope, EvaluationCompleted, EvaluationRequested
from shared.ports import Ports
from shared.runtime import Service, Subscribe

NAME = "evaluator"
TOOLCHAINS: dict[str, type[CpuToolchain]] = {"cpu": CpuToolchain}
"""By the name a chip sheet gives."""


class Worker:
    """The handler: evaluates, publishes."""

    def __init__(self, *, evaluator: Evaluator, chip: str, bus: Bus, clock: Clock) -> None:
        self._evaluator, self._chip, self._bus, self._clock = evaluator, chip, bus, clock

    async def handle(self, envelope: Envelope) -> None:
        """Answer one request.

        Raises:
            Poison: not an evaluation request, or one for another chip.
        """
        request = envelope.event
        if not isinstance(request, EvaluationRequested):
            raise Poison(f"{type(request).__name__} on {topics.evaluation_requests(self._chip)}")
        if request.chip != self._chip:
            raise Poison(f"a request for chip `{request.chip}` on the queue of `{self._chip}`")
        evaluation = await self._evaluator.evaluate(request)
        fact = EvaluationCompleted(
            search_id=request.search_id,
            evaluation_id=request.evaluation_id,
            candidate_id=request.candidate_id,
            kernel_id=request.kernel.kernel_id,
            chip=request.chip,
            purpose=request.purpose,
            evaluation=evaluation,
            attempt=request.attempt,
            at_ns=self._clock.now_ns(),
        )
        answer = envelopes.envelope(
            fact,
            cause_id=envelope.id,
            source=f"/{NAME}/{self._chip}",
            clock=self._clock,
            attempt=request.attempt,
            traceparent=envelope.traceparent,
        )
        await self._bus.publish(envelopes.topic_of(fact), wire.encode(answer))


def toolchain_of(chip: str) -> Toolchain:
    """The toolchain of ``chip``, usable on this machine.

    Raises:
        ChipError: unknown chip, no adapter for it, or its compiler is missing (the message says how to install it).
    """
    sheet = chips.load(chip)
    if sheet.toolchain not in TOOLCHAINS:
        raise ChipError(f"chip `{chip}` needs toolchain `{sheet.toolchain}`, which this worker has not")
    toolchain = TOOLCHAINS[sheet.toolchain]()
    problem = toolchain.check()
    if problem is not None:
        raise problem
    return toolchain


def build(ports: Ports, settings: Settings, *, evaluator: Evaluator | None = None) -> Service:
    """The service over open ports. ``evaluator`` stands in for the one it would make.

    Raises:
        ChipError: the chip cannot be served on this machine.
    """
    evaluator = evaluator or Evaluator(ports, settings, toolchain_of(settings.chip))
    worker = Worker(evaluator=evaluator, chip=settings.chip, bus=ports.bus, clock=ports.clock)
    return Service(
        name=NAME,
        subscriptions=(
            Subscribe(
                topic=topics.evaluation_requests(settings.chip),
                group=f"{NAME}.{settings.chip}",
                handler=worker.handle,
                members=settings.limits.members,
            ),
        ),
        close=evaluator.close,
    )
