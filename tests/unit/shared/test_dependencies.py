"""A service is unready while a dependency is gone, says which and since when, and is ready again when it is back."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from shared import metrics
from shared.bus.memory import MemoryBus
from shared.clock import SECOND_NS, ManualClock
from shared.dependencies import Dependencies, WatchSettings
from shared.errors import Fatal, Unavailable
from shared.health import Health, Phase
from shared.ports import Ports, open_ports
from shared.runtime import running
from shared.service import Service
from shared.settings import PortSettings
from tests.aio import on_loop, until

QUICK = WatchSettings(ping_every_s=0.001, ping_timeout_s=5.0, failures_max=2)


class Broker(MemoryBus):
    """A bus that can be gone, or mute."""

    gone = False
    mute = False

    async def ping(self) -> None:
        if self.mute:
            await asyncio.Event().wait()
        if self.gone:
            raise Unavailable("connection refused")


@dataclass
class World:
    ports: Ports
    broker: Broker
    clock: ManualClock


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    clock = ManualClock(now_ns=100 * SECOND_NS)
    async with open_ports(PortSettings(store_url="memory:"), clock) as ports, Broker() as broker:
        yield World(replace(ports, bus=broker), broker, clock)


@on_loop
async def test_readiness_follows_a_dependency_and_says_why() -> None:
    async with a_world() as world, running([Service(name="idle")], world.ports, watch=QUICK) as services:
        (health,) = services.health
        assert services.ready
        assert health.explanation == ""
        world.broker.gone = True
        await until(lambda: not services.ready)
        assert health.phase is Phase.READY
        assert health.live
        assert health.explanation == "bus gone since 1970-01-01T00:01:40.000000000Z: connection refused"
        world.broker.gone = False
        await until(lambda: services.ready)
        assert health.explanation == ""


@on_loop
async def test_one_failed_ping_is_no_outage() -> None:
    async with a_world() as world:
        dependencies = Dependencies(world.ports, QUICK)
        for gone in (True, False, True, False):
            world.broker.gone = gone
            await dependencies.look()
            assert dependencies.gone == {}


@on_loop
async def test_an_outage_began_with_its_first_failed_ping_and_ends_with_the_first_answer() -> None:
    async with a_world() as world:
        dependencies = Dependencies(world.ports, QUICK)
        world.broker.gone = True
        for _ in range(3):
            await dependencies.look()
            world.clock.advance(SECOND_NS)
        assert dependencies.gone["bus"].since_ns == 100 * SECOND_NS
        assert set(dependencies.gone) == {"bus"}
        world.broker.gone = False
        await dependencies.look()
        assert dependencies.gone == {}


@on_loop
async def test_a_ping_without_an_answer_has_failed() -> None:
    async with a_world() as world:
        dependencies = Dependencies(world.ports, replace(QUICK, ping_timeout_s=0.001, failures_max=1))
        world.broker.mute = True
        await dependencies.look()
        assert dependencies.gone["bus"].reason == "no answer within 0.001 s"


@on_loop
async def test_metrics_tell_which_dependency_is_up() -> None:
    async with a_world() as world:
        with metrics.serving("127.0.0.1:0") as address:
            world.broker.gone = True
            await Dependencies(world.ports, replace(QUICK, failures_max=1)).look()
            text = await asyncio.to_thread(_scraped, address)
    assert 'kernelevolve_dependency_up{dependency="bus"} 0.0' in text
    assert 'kernelevolve_dependency_up{dependency="store"} 1.0' in text


def _scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


@on_loop
async def test_a_port_that_is_closed_stops_the_service() -> None:
    async def closed() -> None:
        raise Fatal("the store is closed")

    async with a_world() as world:
        world.broker.ping = closed
        with pytest.raises(Fatal, match="the store is closed"):
            async with running([Service(name="idle")], world.ports, watch=QUICK) as services:
                await services.failed


def test_a_service_that_is_not_there_yet_says_how_far_it_is() -> None:
    assert Health("search").explanation == "starting"
    assert Health("search", phase=Phase.FAILED, detail="Fatal: lost races").explanation == "Fatal: lost races"


@pytest.mark.parametrize("wrong", [{"ping_every_s": 0.0}, {"ping_timeout_s": -1.0}, {"failures_max": 0}])
def test_intervals_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="positive"):
        WatchSettings(**wrong)
