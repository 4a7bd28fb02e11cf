"""What a service is to whoever runs it: topics it hears, work of its own, calls it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from shared.handling import Handler


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

    ``hindered`` says why the service takes no work just now, empty when it does: then it is not ready.
    ``recover`` runs to its end before any service consumes; ``close`` runs after all have stopped, also after failures.
    """

    name: str
    subscriptions: tuple[Subscribe, ...] = ()
    background: tuple[Background, ...] = ()
    servicers: tuple[Servicer, ...] = ()
    recover: Callable[[], Awaitable[None]] | None = None
    hindered: Callable[[], str] = str
    close: Callable[[], Awaitable[None]] | None = None
