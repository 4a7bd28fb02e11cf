"""Four services in one process: the memory bus, one SQLite store, and the same handlers and records as in a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import evaluator_svc.service
import evaluator_svc.settings
import knowledge_svc.service
import knowledge_svc.settings
import search_svc.service
import search_svc.settings
import synthesizer_svc.service
import synthesizer_svc.settings
from evaluator_svc.evaluators import Evaluates, evaluator_of
from evaluator_svc.trials import Trials
from shared import topics, wire
from shared.consume import ConsumeLimits
from shared.errors import ChipError
from shared.events import Event, ModelBudget, OperatorRef, SearchFinished, SearchPaused
from shared.ports import Ports, open_ports
from shared.runtime import Running, running
from shared.settings import PortSettings

POLL_S = 0.5
PROBES_MAX, BACK_OFF_S = 2, 2.0
"""Of an evaluator that fails its own test: a person waits, so it has one more try."""
DRAIN_S = 1.0
"""For records in flight when the system stops: a finished search has none that matter, a resumed one asks again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Four running services and their ports."""

    ports: Ports
    services: Running
    evaluator: Evaluates

    async def admit(self, operator: OperatorRef, *, threads: int) -> None:
        """Run the evaluator's admission of ``operator`` now; its text must be in the store.

        Raises:
            OperatorError: why it is refused.
        """
        await self.evaluator.admit(operator, threads)

    async def watch(self, search_id: str) -> AsyncIterator[Event]:
        """Facts of one search published since this process began, until it has finished or waits to be resumed.

        Raises:
            Exception: the failure of a service, as soon as one fails.
        """
        async with self.ports.bus.subscribe(topics.FACTS, group=f"watch.{search_id}") as subscription:
            while True:
                delivery = await subscription.poll(POLL_S)
                if self.services.failed.done():
                    await self.services.failed
                if delivery is None:
                    continue
                await subscription.commit(delivery)
                event = wire.decode(delivery.record).event
                if getattr(event, "search_id", "") != search_id:
                    continue
                yield event
                if isinstance(event, SearchFinished | SearchPaused):
                    return


@asynccontextmanager
async def embedded(
    store_url: str,
    chip: str,
    environment: Mapping[str, str],
    *,
    resume: bool = False,
    resumed_with: ModelBudget = search_svc.service.NO_BUDGET,
) -> AsyncIterator[Embedded]:
    """The whole system over ``store_url``, for the length of the block.

    ``resume``: ask again for everything outstanding, because the bus that held the requests died with its process, and
    go on with what was paused; it may then spend ``resumed_with`` on models.

    Raises:
        UserError: a setting, the store or the chip's toolchain is unusable.
    """
    async with open_ports(PortSettings(bus_url="memory:", store_url=store_url, cache_url="memory:")) as ports:
        search_settings, _ = search_svc.settings.from_env(environment)
        search = search_svc.service.build(
            ports, replace(search_settings, reissue_outstanding=resume), resumed_with=resumed_with
        )
        knowledge, library = knowledge_svc.service.build(ports, knowledge_svc.settings.from_env(environment))
        evaluator = open_evaluator(ports, chip, environment)
        synthesizer = synthesizer_svc.service.build(
            ports, synthesizer_svc.settings.from_env(environment), library, trials=Trials(evaluator)
        )
        evaluation = evaluator_svc.service.build(ports, evaluator.settings, evaluator=evaluator, leaves_when_out=True)
        async with running(
            (knowledge, synthesizer, evaluation, search), ports, ConsumeLimits(drain_s=DRAIN_S)
        ) as services:
            yield Embedded(ports=ports, services=services, evaluator=evaluator)


def open_evaluator(ports: Ports, chip: str, environment: Mapping[str, str]) -> Evaluates:
    """The evaluator of ``chip`` alone; whoever opens it closes it.

    Raises:
        UserError: a setting or the chip's toolchain is unusable.
    """
    settings = evaluator_svc.settings.from_env(environment)
    canary = replace(settings.canary, probes_max=PROBES_MAX, back_off_s=BACK_OFF_S)
    pool = replace(settings.pool, drain_s=DRAIN_S)
    return evaluator_of(ports, replace(settings, chip=chip, pool=pool, canary=canary))


@asynccontextmanager
async def evaluator_alone(chip: str, environment: Mapping[str, str]) -> AsyncIterator[tuple[Ports, Evaluates]]:
    """One evaluator over an in-memory store, for the verdict on a kernel of one's own.

    Raises:
        UserError: a setting or the chip's toolchain is unusable.
    """
    async with open_ports(PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")) as ports:
        evaluator = open_evaluator(ports, chip, environment)
        try:
            found = await evaluator.probe(thorough=False)
            if not found.healthy:
                raise ChipError(f"this machine's evaluator fails its own test: {found.fault}")
            yield ports, evaluator
        finally:
            await evaluator.close()
