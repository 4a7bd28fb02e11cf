"""The cache, lease and work queue ports. Losing what they hold loses time, never a fact.

``shared.adapters.open_cache(url, clock)`` chooses the adapter: ``memory:`` or ``redis://…``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

from shared.events.values import PRIORITIES


class Cache(Protocol):
    """Bytes with an optional time to live."""

    async def get(self, key: str) -> bytes | None: ...
    async def put(self, key: str, value: bytes, ttl_s: float | None = None) -> None: ...


class Leases(Protocol):
    """Exclusive, expiring ownership with a fencing token that only grows per name."""

    async def acquire(self, name: str, owner: str, ttl_s: float) -> int | None:
        """A token, or None while somebody else holds an unexpired lease. The same owner gets a new token."""
        ...

    async def renew(self, name: str, token: int, ttl_s: float) -> bool:
        """False when ``token`` no longer holds the lease."""
        ...

    async def release(self, name: str, token: int) -> None:
        """Does nothing when ``token`` no longer holds the lease."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work of a queue. ``flow`` is whom it is for (a search): flows of equal priority get equal shares.

    Raises:
        ValueError: a priority of more than 32 bits.
    """

    id: str
    flow: str
    body: bytes
    priority: int = 0

    def __post_init__(self) -> None:
        if self.priority not in PRIORITIES:
            raise ValueError(f"a priority of {self.priority}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Work in a worker's hands until it is finished or the claim expires."""

    work: Work
    worker: str
    token: int
    """Fencing token: grows with every claim made in a queue, also across a loss of the back end's data."""
    deliveries: int
    """One more than the workers in ``lost_by``."""
    lost_by: tuple[str, ...] = ()
    """Workers whose claims on it expired, in order, also before it was finished and added again."""


class WorkState(StrEnum):
    WAITING = "waiting"
    CLAIMED = "claimed"
    FINISHED = "finished"
    """Not long ago; older ones are unknown."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    waiting: int
    claimed: int


class WorkQueues(Protocol):
    """Named queues from which a pool's workers take what is next: any worker any work, so that none idles beside work.

    What is next: the highest priority; in it, the flow with the least *virtual time*; in it, the oldest. A flow's
    virtual time is the worker time it has had: at a claim it grows by an estimate (the mean cost of what the queue has
    finished), which ``finish`` corrects. A flow that comes back after a pause starts at the virtual time of the flow of
    its priority served last, or at its own when that is later, so that it can neither hoard shares nor be punished
    (start-time fair queueing, Goyal, Vin and Cheng, SIGCOMM 1996).

    A claim that is not renewed expires: the work goes back to its old place in its flow. ``token`` is the fence: what a
    worker does after its claim expired is refused, once somebody else has claimed or finished the work, or the back
    end has forgotten it.
    """

    async def add(self, queue: str, work: Work) -> bool:
        """False, and nothing changes, when work of that id is waiting or claimed.

        Finished work may come again: a bus delivers twice. While it is known as finished, it is known whom it lost, so
        that work given up for the workers it took along is not begun anew with others.
        """
        ...

    async def claim(self, queue: str, worker: str, ttl_s: float, wait_s: float) -> Claim | None:
        """The next work, waiting up to ``wait_s`` for some to come or to expire; None when none did."""
        ...

    async def renew(self, queue: str, claim: Claim, ttl_s: float) -> bool:
        """False when the claim is no longer held."""
        ...

    async def finish(self, queue: str, claim: Claim, cost_ns: int) -> bool:
        """Done, having cost ``cost_ns`` of worker time. False, and nothing changes, when the claim is not held."""
        ...

    async def give_back(self, queue: str, claim: Claim) -> bool:
        """Back to the front of its flow, as if never claimed. False when the claim is no longer held."""
        ...

    async def states(self, queue: str, ids: Sequence[str]) -> Mapping[str, WorkState]: ...

    async def depth(self, queue: str) -> Depth: ...


class CacheBackend(Protocol):
    """One back end, three ports; an async context manager.

    Every call raises ``Unavailable`` while the back end cannot be reached, ``Fatal`` after close. A back end that lost
    its data answers as an empty one.
    """

    @property
    def cache(self) -> Cache: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def queues(self) -> WorkQueues: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...
    async def ping(self) -> None:
        """Raises ``Unavailable`` unless the back end answers."""
        ...
