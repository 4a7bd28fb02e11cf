"""Services start, recover, consume, drain and close in order, and one failure stops them all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from shared import topics, wire
from shared.consume import ConsumeLimits
from shared.errors import Unavailable, UserError
from shared.events import Envelope
from shared.health import Phase
from shared.ports import Ports, open_ports
from shared.process import main, run
from shared.runtime import first_of, running
from shared.service import Service, Subscribe
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.unit.shared.builders import an_envelope

LIMITS = ConsumeLimits(poll_wait_s=0.001, drain_s=5.0)
IN_MEMORY = PortSettings(store_url="memory:")


@asynccontextmanager
async def some_ports(*published: Envelope) -> AsyncIterator[Ports]:
    async with open_ports(IN_MEMORY) as ports:
        for envelope in published:
            await ports.bus.publish(topics.FACTS, wire.encode(envelope))
        yield ports


def a_service(name: str, handler: object, **changes: object) -> Service:
    return Service(name=name, subscriptions=(Subscribe(topic=topics.FACTS, group=name, handler=handler),), **changes)


async def ignore(envelope: Envelope) -> None:
    pass


@on_loop
async def test_services_recover_before_any_consumes_and_close_in_reverse() -> None:
    story: list[str] = []
    consumed = asyncio.Event()

    def service(name: str) -> Service:
        async def recover() -> None:
            story.append(f"recover {name}")

        async def handle(envelope: Envelope) -> None:
            story.append(f"handle {name}")
            if sum(line.startswith("handle") for line in story) == 2:
                consumed.set()

        async def close() -> None:
            story.append(f"close {name}")

        return a_service(name, handle, recover=recover, close=close)

    async with some_ports(an_envelope()) as ports, running([service("a"), service("b")], ports, LIMITS) as handle:
        assert handle.ready
        await consumed.wait()
    assert story[:2] == ["recover a", "recover b"]
    assert sorted(story[2:4]) == ["handle a", "handle b"]
    assert story[4:] == ["close b", "close a"]
    assert [health.phase for health in handle.health] == [Phase.STOPPED, Phase.STOPPED]


@on_loop
async def test_the_members_of_a_subscription_work_side_by_side() -> None:
    meeting = asyncio.Barrier(3)

    async def meets_the_others(envelope: Envelope) -> None:
        await meeting.wait()

    keys = [replace(an_envelope(n=number), partition_key=f"key{number}") for number in range(60)]
    subscribe = Subscribe(topic=topics.FACTS, group="g", handler=meets_the_others, members=2)
    async with some_ports(*keys) as ports, running([Service(name="s", subscriptions=(subscribe,))], ports, LIMITS):
        await meeting.wait()


@on_loop
async def test_the_first_failure_stops_every_service_and_is_raised_as_it_was() -> None:
    closed: list[str] = []

    async def breaks(envelope: Envelope) -> None:
        raise ZeroDivisionError("bug")

    async def close() -> None:
        closed.append("good")

    async with some_ports(an_envelope()) as ports:
        with pytest.raises(ZeroDivisionError, match="bug"):
            async with running([a_service("good", ignore, close=close), a_service("bad", breaks)], ports, LIMITS) as it:
                await asyncio.wait({it.failed})
        assert [health.phase for health in it.health] == [Phase.FAILED, Phase.FAILED]
        assert it.health[0].detail == "ZeroDivisionError: bug"
        assert not it.health[0].live
    assert closed == ["good"]


@on_loop
async def test_an_embedding_program_can_await_the_failure_itself() -> None:
    async def breaks(envelope: Envelope) -> None:
        raise ZeroDivisionError("bug")

    async with some_ports(an_envelope()) as ports:
        with pytest.raises(ZeroDivisionError):
            async with running([a_service("bad", breaks)], ports, LIMITS) as handle:
                await handle.failed


@on_loop
async def test_a_block_that_raises_drains_the_services_and_its_own_error_wins() -> None:
    finished: list[str] = []
    started = asyncio.Event()

    async def handle(envelope: Envelope) -> None:
        started.set()
        await asyncio.sleep(0)
        finished.append(envelope.id)

    async with some_ports(an_envelope()) as ports:
        with pytest.raises(UserError, match="no such operator"):
            async with running([a_service("s", handle)], ports, LIMITS):
                await started.wait()
                raise UserError("no such operator")
    assert finished == [an_envelope().id]


@on_loop
async def test_a_failure_that_the_blocks_own_error_hides_is_a_note_on_it() -> None:
    async def breaks(envelope: Envelope) -> None:
        raise ZeroDivisionError("bug")

    async with some_ports(an_envelope()) as ports:
        with pytest.raises(UserError) as caught:
            async with running([a_service("bad", breaks)], ports, LIMITS) as handle:
                await asyncio.wait({handle.failed})
                raise UserError("gave up")
    assert caught.value.__notes__ == ["a service had failed: ZeroDivisionError('bug')"]


@on_loop
async def test_stopping_finishes_what_is_in_flight() -> None:
    started, finish = asyncio.Event(), asyncio.Event()
    finished: list[str] = []

    async def handle(envelope: Envelope) -> None:
        started.set()
        await finish.wait()
        finished.append(envelope.id)

    async with some_ports(an_envelope()) as ports, running([a_service("s", handle)], ports, LIMITS) as it:
        await started.wait()
        stopping = asyncio.create_task(it.stop())
        await asyncio.sleep(0)
        assert it.health[0].phase is Phase.DRAINING
        assert not it.ready
        finish.set()
        await stopping
        assert finished == [an_envelope().id]
        assert it.failed.cancelled()


@on_loop
async def test_cancelling_a_drain_abandons_what_is_in_flight() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(envelope: Envelope) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def embed(ports: Ports) -> None:
        async with running([a_service("s", endless)], ports, replace(LIMITS, drain_s=600.0)):
            await started.wait()

    async with some_ports(an_envelope()) as ports:
        embedding = asyncio.create_task(embed(ports))
        await started.wait()
        await asyncio.sleep(0)
        embedding.cancel()
        await asyncio.wait({embedding})
        assert embedding.cancelled()
        assert cancelled.is_set()


@on_loop
async def test_a_recovery_that_fails_starts_nothing_and_closes_everything() -> None:
    story: list[str] = []

    async def breaks() -> None:
        raise ZeroDivisionError

    async def handle(envelope: Envelope) -> None:
        story.append("handled")

    async def close() -> None:
        story.append("closed")

    async with some_ports(an_envelope()) as ports:
        with pytest.raises(ZeroDivisionError):
            async with running([a_service("s", handle, recover=breaks, close=close)], ports, LIMITS):
                story.append("entered")
    assert story == ["closed"]


@on_loop
async def test_a_service_without_subscriptions_stays_up_until_told() -> None:
    async with some_ports() as ports, running([Service(name="idle")], ports, LIMITS) as handle:
        await asyncio.sleep(0)
        assert handle.ready
    assert handle.health[0].phase is Phase.STOPPED


@on_loop
async def test_run_returns_when_told_to_stop() -> None:
    stop = asyncio.Event()

    async def handle(envelope: Envelope) -> None:
        stop.set()

    async with some_ports(an_envelope()) as ports:
        await run([a_service("s", handle)], ports, stop, LIMITS)


@pytest.mark.parametrize("waiting_for", ["its bus", "what it recovers from"])
@on_loop
async def test_a_service_that_waits_for_a_dependency_on_start_stops_when_told_to(waiting_for: str) -> None:
    closed, stop = asyncio.Event(), asyncio.Event()

    class Gone:
        """A bus without a broker."""

        def __init__(self, bus: object) -> None:
            self._bus = bus

        def __getattr__(self, name: str) -> object:
            return getattr(self._bus, name)

        def subscribe(self, topic: str, group: str) -> object:
            return self

        async def __aenter__(self) -> object:
            asyncio.get_running_loop().call_later(0.02, stop.set)
            raise Unavailable("no broker")

        async def __aexit__(self, *exc: object) -> None:
            raise AssertionError("was never open")

    async def recover() -> None:
        asyncio.get_running_loop().call_later(0.02, stop.set)
        await asyncio.Event().wait()

    async def close() -> None:
        closed.set()

    async with some_ports() as ports:
        if waiting_for == "its bus":
            service = a_service("s", ignore, close=close)
            await run([service], replace(ports, bus=Gone(ports.bus)), stop, LIMITS)
        else:
            await run([a_service("s", ignore, recover=recover, close=close)], ports, stop, LIMITS)
    assert closed.is_set()


@on_loop
async def test_run_raises_the_failure_of_a_service() -> None:
    async def breaks(envelope: Envelope) -> None:
        raise ZeroDivisionError

    async with some_ports(an_envelope()) as ports:
        with pytest.raises(ZeroDivisionError):
            await run([a_service("s", breaks)], ports, limits=LIMITS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@on_loop
async def test_a_signal_drains(number: signal.Signals) -> None:
    finished: list[str] = []

    async def handle(envelope: Envelope) -> None:
        os.kill(os.getpid(), number)
        await asyncio.sleep(0)
        finished.append(envelope.id)

    async with some_ports(an_envelope()) as ports:
        await run([a_service("s", handle)], ports, limits=LIMITS)
    assert finished == [an_envelope().id]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_several_failures_at_once_are_one_error_with_notes() -> None:
    group = BaseExceptionGroup("all", [ExceptionGroup("inner", [KeyError("first")]), ValueError("second")])
    failure = first_of(group)
    assert isinstance(failure, KeyError)
    assert failure.__notes__ == ["at the same time: ValueError('second')"]


def test_a_users_mistake_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(lambda _ports: [], PortSettings(bus_url="pigeon://broker:9092")) == 2
    assert capsys.readouterr().err.splitlines() == [
        "BUS_URL=pigeon://broker:9092: no adapter for scheme 'pigeon' (use memory: or kafka://…)"
    ]


def test_a_service_process_ends_with_0_on_sigterm() -> None:
    program = (
        "import sys; from shared.process import main; from shared.service import Service\n"
        "from shared.settings import PortSettings\n"
        "async def recover(): print('up', flush=True)\n"
        "sys.exit(main(lambda ports: [Service(name='s', recover=recover)], PortSettings(store_url='memory:')))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert process.wait(30) == 0
