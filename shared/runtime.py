"""Running services: recover, consume, drain, close.

``running`` starts any number of services on one event loop, for a program that embeds them. ``run`` adds signals, and
``main`` is what a service's ``__main__`` calls. The first error of any service stops them all.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from shared import logs, metrics, telemetry
from shared.bus import Subscription
from shared.consume import ConsumeLimits, Consumer, Handler
from shared.dependencies import Dependencies, WatchSettings
from shared.errors import Fatal, UserError
from shared.handling import OUTCOMES
from shared.health import Health, Phase
from shared.lag import LagSampler
from shared.patience import patiently
from shared.periodic import every
from shared.ports import Ports, open_ports
from shared.rpc.settings import ServerSettings
from shared.settings import PortSettings, from_env

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
EXIT_USER_ERROR = 2
SAMPLE_EVERY_S = 5.0
"""Pause between samples of what no event announces: consumer lag, readiness. A third of a usual scrape interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """``members`` loops of one group on one topic, each with up to ``in_flight`` records in hand.

    Records of one partition are handled in turn, whatever ``in_flight`` is.
    """

    topic: str
    group: str
    handler: Handler
    members: int = 1
    in_flight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Servicer:
    """A gRPC service. ``add`` takes a ``grpc.aio.Server``; ``name`` is the full one, for health and reflection."""

    name: str
    add: Callable[[Any], None]


Background = Callable[[asyncio.Event], Awaitable[None]]
"""Work of a service's own, until the event is set. Returning before that is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What a service's ``build`` returns.

    ``recover`` runs to its end before any service consumes; ``close`` runs after all have stopped, also after failures.
    """

    name: str
    subscriptions: tuple[Subscribe, ...] = ()
    background: tuple[Background, ...] = ()
    servicers: tuple[Servicer, ...] = ()
    recover: Callable[[], Awaitable[None]] | None = None
    close: Callable[[], Awaitable[None]] | None = None


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
    handle = Running(tuple(Health(service.name, gone=dependencies.gone) for service in services))
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


async def run(
    services: Sequence[Service],
    ports: Ports,
    stop: asyncio.Event | None = None,
    limits: ConsumeLimits | None = None,
    watch: WatchSettings | None = None,
    rpc: ServerSettings | None = None,
) -> None:
    """Run until ``stop``, SIGTERM or SIGINT, then drain: gRPC calls first, which consumers may still answer. A second
    signal ends the process at once.

    Raises:
        UserError: gRPC cannot be served as ``rpc`` says.
        Exception: the first failure of a service.
    """
    stop = stop or asyncio.Event()
    with _signals(stop):
        told = asyncio.create_task(stop.wait())
        try:
            async with AsyncExitStack() as stack:
                async with _unless(told):
                    handle = await stack.enter_async_context(running(services, ports, limits, watch))
                    await stack.enter_async_context(_serving(services, rpc, handle))
                if not told.done():
                    either: set[asyncio.Future[Any]] = {told, handle.failed}
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()


@asynccontextmanager
async def _unless(told: asyncio.Task[Any]) -> AsyncIterator[None]:
    """Leave the block as soon as ``told`` is done: what it waits for may not come for hours."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as limit:

            def leave(_: object) -> None:
                limit.reschedule(loop.time())

            told.add_done_callback(leave)
            try:
                yield
            finally:
                told.remove_done_callback(leave)
    except TimeoutError:
        if not limit.expired():
            raise
        log.info("told to stop before everything that is needed was there")


@asynccontextmanager
async def _serving(
    services: Sequence[Service], settings: ServerSettings | None, handle: Running
) -> AsyncIterator[None]:
    """The gRPC server, if one is wanted."""
    if settings is None or not settings.listen:
        yield
        return
    try:
        from shared.rpc.server import serving
    except ImportError as error:
        hint = "pip install 'kernelevolve[grpc]'"
        raise UserError(f"needs the extra `grpc`: {error}", where="GRPC_LISTEN", hint=hint) from error
    async with serving(services, settings, handle.health):
        yield


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def drain() -> None:
        log.info("draining; a second signal ends the process")
        stop.set()
        restore()

    def restore() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    for number in SIGNALS:
        loop.add_signal_handler(number, drain)
    try:
        yield
    finally:
        restore()


def main(build: Callable[[Ports], Sequence[Service]], settings: PortSettings | None = None) -> int:
    """Open the ports, build the services, run them, with logs, metrics and traces as the environment says.

    Returns the exit code; a ``UserError`` is one line on stderr.
    """

    async def go() -> None:
        watch = from_env(WatchSettings, os.environ, "DEPENDENCY_")
        told = from_env(telemetry.TelemetrySettings, os.environ)
        rpc = from_env(ServerSettings, os.environ, "GRPC_")
        async with open_ports(settings or from_env(PortSettings, os.environ)) as ports:
            services = build(ports)
            with telemetry.told(told, [service.name for service in services]):
                await run(services, ports, watch=watch, rpc=rpc)

    try:
        with logs.written(from_env(logs.LogSettings, os.environ)):
            asyncio.run(go())
    except UserError as error:
        print(error, file=sys.stderr)
        return EXIT_USER_ERROR
    return 0
