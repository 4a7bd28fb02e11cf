"""Running services on one event loop: recover, consume, drain, close. The first error of any service stops them all.

``shared.process`` makes a process of it, with signals and servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from shared import metrics
from shared.bus import Subscription
from shared.consume import ConsumeLimits, Consumer
from shared.dependencies import Dependencies, WatchSettings
from shared.errors import Fatal
from shared.handling import OUTCOMES
from shared.health import Health, Phase
from shared.lag import LagSampler
from shared.patience import patiently
from shared.periodic import every
from shared.ports import Ports
from shared.service import Background, Service, Subscribe

SAMPLE_EVERY_S = 5.0
"""Pause between samples of what no event announces: consumer lag, readiness. A third of a usual scrape interval."""


class Running:
    """Services that have been started."""

    def __init__(self, health: tuple[Health, ...]) -> None:
        self.health = health
        """One per service, in the order given to ``running``."""
        self.failed: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        """Awaiting it raises the first failure of a service; it is cancelled when all stopped as told."""
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def ready(self) -> bool:
        return all(health.ready for health in self.health)

    async def stop(self) -> None:
        """Drain: no new records, those in flight finish (``ConsumeLimits.drain_s``). Never raises a failure."""
        self._stop.set()
        for health in self.health:
            if health.live:
                health.phase = Phase.DRAINING
        if self._task is None:
            return
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:  # told not to wait for the drain
            self._task.cancel()
            await asyncio.wait({self._task})
            raise

    def note_failure(self, error: BaseException) -> None:
        """Add the failure of a service, if there was one, to ``error``, which is raised in its place."""
        if self.failed.done() and not self.failed.cancelled() and self.failed.exception() is not error:
            error.add_note(f"a service had failed: {self.failed.exception()!r}")

    def start(self, work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        """Run ``work`` until it ends or fails. Called once, by ``running``."""
        self._task = asyncio.create_task(self._guard(work))

    async def _guard(self, work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        try:
            await work(self._stop)
        except asyncio.CancelledError:
            self.failed.cancel()
            raise
        except BaseException as error:  # noqa: BLE001 - handed on, whatever it is
            failure = first_of(error)
            for health in self.health:
                health.phase, health.detail = Phase.FAILED, f"{type(failure).__name__}: {failure}"
            self.failed.set_exception(failure)
            self.failed.exception()  # looked at: whether anybody awaits it or not, ``running`` raises it
        else:
            for health in self.health:
                health.phase = Phase.STOPPED
            self.failed.cancel()


@asynccontextmanager
async def running(
    services: Sequence[Service],
    ports: Ports,
    limits: ConsumeLimits | None = None,
    watch: WatchSettings | None = None,
) -> AsyncIterator[Running]:
    """Services that have recovered and are consuming, for the length of the block.

    While it lasts, bus, store and cache are pinged as ``watch`` says, and ``Health.ready`` follows. Leaving the block
    drains them. A failure of a service is raised on leaving, unless the block itself raises.
    """
    limits = limits or ConsumeLimits()
    dependencies = Dependencies(ports, watch)
    handle = Running(
        tuple(Health(service.name, gone=dependencies.gone, hindered=service.hindered) for service in services)
    )
    async with AsyncExitStack() as stack:
        for service in services:
            if service.close is not None:
                stack.push_async_callback(service.close)
        for service, health in zip(services, handle.health, strict=True):
            if service.recover is not None:
                health.phase = Phase.RECOVERING
                await service.recover()
        members = await _join(services, ports, stack)
        background = [work for service in services for work in service.background]
        background += [dependencies.watch, _sampling(members, handle.health)]
        handle.start(lambda stop: _work(members, background, ports, limits, stop))
        for health in handle.health:
            health.phase = Phase.READY
        try:
            yield handle
        except BaseException as error:
            await handle.stop()
            handle.note_failure(error)
            raise
        await handle.stop()
        if not handle.failed.cancelled():
            await handle.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """An open subscription and whose it is."""

    service: str
    number: int
    subscribe: Subscribe
    subscription: Subscription


async def _join(services: Sequence[Service], ports: Ports, stack: AsyncExitStack) -> list[_Member]:
    """Open every subscription before the first poll: a member that joins later would restart those in flight.

    All at once, because a cluster forms a group once for all that join together, and anew for everyone who comes later.
    """
    members = [
        _Member(
            service=service.name,
            number=number,
            subscribe=subscribe,
            subscription=ports.bus.subscribe(subscribe.topic, subscribe.group),
        )
        for service in services
        for subscribe in service.subscriptions
        for number in range(subscribe.members)
    ]
    try:
        async with asyncio.TaskGroup() as joining:
            for member in members:
                enter = partial(stack.enter_async_context, member.subscription)
                joining.create_task(patiently(enter, f"subscribe to {member.subscribe.topic}"))
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    return members


def _sampling(members: Sequence[_Member], health: Sequence[Health]) -> Background:
    for member in members:
        for outcome in OUTCOMES:  # a query sees a first dead letter only as growth from something
            metrics.RECORDS.inc(member.subscribe.topic, member.subscribe.group, outcome, by=0)
    lag = LagSampler([(member.subscribe.topic, member.subscribe.group, member.subscription) for member in members])

    async def sample() -> None:
        lag.sample()
        for one in health:
            metrics.READY.set(one.ready, one.service)

    return lambda stop: every(SAMPLE_EVERY_S, sample, stop)


async def _work(
    members: Sequence[_Member],
    background: Sequence[Background],
    ports: Ports,
    limits: ConsumeLimits,
    stop: asyncio.Event,
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(stop.wait())
        for work in background:
            group.create_task(_until_told(work, stop))
        for member in members:
            consumer = Consumer(
                bus=ports.bus,
                subscription=member.subscription,
                handler=member.subscribe.handler,
                clock=ports.clock,
                group=member.subscribe.group,
                in_flight=member.subscribe.in_flight,
                limits=limits,
            )
            name = f"{member.service}:{member.subscribe.topic}#{member.number}"
            group.create_task(consumer.run(stop), name=name)


async def _until_told(work: Background, stop: asyncio.Event) -> None:
    await work(stop)
    if not stop.is_set():
        raise Fatal(f"{work!r} ended before it was told to")


def first_of(error: BaseException) -> BaseException:
    """The first failure inside nested exception groups; the others are added to it as notes."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    first, *others = error.exceptions
    failure = first_of(first)
    for other in others:
        failure.add_note(f"at the same time: {other!r}")
    return failure
