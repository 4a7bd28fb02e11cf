"""Choosing an adapter by URL. A driver is imported when its adapter is opened, never before.

``memory:`` and ``sqlite:PATH`` need nothing beyond Python; the others name the extra that brings their driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from shared.bus import Bus
from shared.cache import CacheBackend
from shared.clock import Clock
from shared.errors import UserError
from shared.settings import from_env
from shared.store import Store

_EXTRAS = {
    "kafka": "kafka",
    "kafkas": "kafka",
    "mongodb": "mongo",
    "mongodb+srv": "mongo",
    "redis": "redis",
    "rediss": "redis",
}
_DRIVERS = {"aiokafka", "bson", "motor", "pymongo", "redis"}


def open_bus(url: str, environment: Mapping[str, str] = os.environ, clock: Clock | None = None) -> Bus:
    """``memory:`` (a bus of this process), ``kafka://…``, or ``kafkas://…`` over TLS; otherwise ``UserError``.

    ``KAFKA_*`` in ``environment`` are the adapter's limits: ``shared.bus.kafka_settings``. ``clock`` dates what is
    published in this process; a cluster's records carry the machine's time.
    """
    scheme, _ = _split(url)
    if scheme == "memory":
        from shared.bus.memory import MemoryBus

        return MemoryBus(clock=clock)
    if scheme in ("kafka", "kafkas"):
        with _driver("BUS_URL", url):
            from shared.bus.kafka import KafkaBus
        from shared.bus.kafka_settings import KafkaSettings, parse

        return KafkaBus(parse(url), from_env(KafkaSettings, environment, "KAFKA_"))
    raise _unsupported("BUS_URL", url, ("memory:", "kafka://…"))


def open_store(url: str) -> Store:
    """``memory:``, ``sqlite:PATH`` relative to the working directory, or ``mongodb://…``; otherwise ``UserError``."""
    scheme, rest = _split(url)
    if scheme == "memory":
        from shared.store.memory import MemoryStore

        return MemoryStore()
    if scheme == "sqlite":
        if not rest.removeprefix("//"):
            raise UserError("names no file", where=f"STORE_URL={url}", hint="write sqlite:PATH")
        from shared.store.sqlite import SqliteStore

        return SqliteStore(Path(rest.removeprefix("//")))
    if scheme in ("mongodb", "mongodb+srv"):
        with _driver("STORE_URL", url):
            from shared.store.mongo import MongoStore

        return MongoStore(url)
    raise _unsupported("STORE_URL", url, ("memory:", "sqlite:PATH", "mongodb://…"))


def open_cache(url: str, clock: Clock) -> CacheBackend:
    """``memory:`` → a cache of this process, on ``clock``; ``redis://…`` on its server's. Otherwise ``UserError``."""
    scheme, _ = _split(url)
    if scheme == "memory":
        from shared.cache.memory import MemoryCacheBackend

        return MemoryCacheBackend(clock)
    if scheme in ("redis", "rediss"):
        with _driver("CACHE_URL", url):
            from shared.cache.redis import RedisCacheBackend

        return RedisCacheBackend(url)
    raise _unsupported("CACHE_URL", url, ("memory:", "redis://…"))


@contextmanager
def _driver(variable: str, url: str) -> Iterator[None]:
    """Around the import of an adapter: says which extra brings the driver when it is not installed."""
    scheme, _ = _split(url)
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _DRIVERS:
            raise
        hint = f"pip install 'kernelevolve[{_EXTRAS[scheme]}]'"
        raise UserError(
            f"its driver {error.name} is not installed", where=f"{variable}={redacted(url)}", hint=hint
        ) from error


def redacted(url: str) -> str:
    """``url`` without its user and password: the only form that is logged or shown."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc="…@" + parts.netloc.rpartition("@")[2]).geturl()


def _split(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition(":")
    return scheme.lower(), rest


def _unsupported(variable: str, url: str, known: tuple[str, ...]) -> UserError:
    scheme, _ = _split(url)
    return UserError(
        f"no adapter for scheme {scheme!r}", where=f"{variable}={redacted(url)}", hint=f"use {' or '.join(known)}"
    )
