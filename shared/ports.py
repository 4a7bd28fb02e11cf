"""The open connections of a process: a bus, a store, a cache and a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from shared.adapters import open_bus, open_cache, open_store
from shared.bus import Bus
from shared.cache import CacheBackend
from shared.clock import Clock, SystemClock
from shared.settings import PortSettings
from shared.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a service is built from. All of it is open, and closed by whoever opened it."""

    bus: Bus
    store: Store
    cache: CacheBackend
    clock: Clock


@asynccontextmanager
async def open_ports(settings: PortSettings, clock: Clock | None = None) -> AsyncIterator[Ports]:
    """Open what the URLs name; close it in reverse.

    Raises:
        UserError: an unknown URL, or a store that cannot be used.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(settings.store_url))
        cache = await stack.enter_async_context(open_cache(settings.cache_url, clock))
        bus = await stack.enter_async_context(open_bus(settings.bus_url))
        yield Ports(bus=bus, store=store, cache=cache, clock=clock)
