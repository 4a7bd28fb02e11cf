"""The open connections of a process: a bus, a store, a cache and a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from shared.adapters import open_bus, open_cache, open_store
from shared.bus import Bus
from shared.cache import CacheBackend
from shared.clock import Clock, SystemClock
from shared.patience import patiently
from shared.settings import PortSettings
from shared.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What a service is built from. All of it is open, and closed by whoever opened it."""

    bus: Bus
    store: Store
    cache: CacheBackend
    clock: Clock


@asynccontextmanager
async def open_ports(settings: PortSettings, clock: Clock | None = None) -> AsyncIterator[Ports]:
    """Open what the URLs name, waiting for what is away; close it in reverse.

    Raises:
        UserError: an unknown URL, or a store that cannot be used.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        store = await _opened(stack, open_store(settings.store_url), "open the store")
        cache = await _opened(stack, open_cache(settings.cache_url, clock), "open the cache")
        bus = await _opened(stack, open_bus(settings.bus_url, clock=clock), "open the bus")
        yield Ports(bus=bus, store=store, cache=cache, clock=clock)


async def _opened(stack: AsyncExitStack, backend: AbstractAsyncContextManager[T], what: str) -> T:
    return await patiently(partial(stack.enter_async_context, backend), what)
