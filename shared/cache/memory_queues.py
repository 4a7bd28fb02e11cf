"""Work queues in dictionaries, on a clock that is passed in; see ``shared.cache.WorkQueues`` for the rules.

The scripts ``queue*.lua`` keep the same rules in Redis. Times and costs are whole microseconds in both.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.cache import Claim, Depth, Work, WorkState
from shared.clock import Clock

SECOND_US = 1_000_000
MICROSECOND_NS = 1_000
FINISHED_MAX = 100_000
"""Ids of finished work remembered per queue,"""
FINISHED_FOR_US = 3600 * SECOND_US
"""and for how long."""
FIRST_ESTIMATE_US = SECOND_US
"""What a claim is charged before anything has finished."""
SMOOTHING = 8
"""The mean cost follows a new one by 1/8."""


@dataclass
class _Item:
    work: Work
    order: int
    """Place among the work of its flow."""
    deliveries: int = 0
    lost_by: tuple[str, ...] = ()
    worker: str = ""
    token: int = 0
    """Of the claim that holds it, also when that has expired and nobody else took the work; 0 for none."""
    charged_us: int = 0


@dataclass
class _Flow:
    virtual_us: int
    waiting: list[tuple[int, str]] = field(default_factory=list)
    """(order, id), ascending."""
    work: int = 0
    """How much it has, waiting and claimed. A flow without any is kept while its virtual time is above the floor."""


@dataclass
class _Level:
    """The flows of one priority; it exists while it has work."""

    flows: dict[str, _Flow] = field(default_factory=dict)
    floor_us: int = 0
    """Virtual time of the flow served last."""
    work: int = 0

    def join(self, name: str) -> None:
        flow = self.flows.setdefault(name, _Flow(0))
        if not flow.work:
            flow.virtual_us = max(flow.virtual_us, self.floor_us)
        flow.work += 1
        self.work += 1

    def leave(self, name: str) -> None:
        flow = self.flows[name]
        flow.work -= 1
        self.work -= 1
        if not flow.work and flow.virtual_us <= self.floor_us:
            del self.flows[name]

    def wait(self, item: _Item) -> None:
        flow = self.flows[item.work.flow]
        if not flow.waiting:
            flow.virtual_us = max(flow.virtual_us, self.floor_us)
        insort(flow.waiting, (item.order, item.work.id))

    def withdraw(self, item: _Item) -> None:
        self.flows[item.work.flow].waiting.remove((item.order, item.work.id))

    def next(self) -> str | None:
        """Id of the oldest work of the flow with the least virtual time."""
        ready = [(flow.virtual_us, name) for name, flow in self.flows.items() if flow.waiting]
        return self.flows[min(ready)[1]].waiting[0][1] if ready else None

    def serve(self, item: _Item, estimate_us: int) -> None:
        flow = self.flows[item.work.flow]
        self.floor_us = flow.virtual_us
        flow.virtual_us += estimate_us
        item.charged_us = estimate_us
        for name in [name for name, each in self.flows.items() if not each.work and each.virtual_us <= self.floor_us]:
            del self.flows[name]

    def charge_instead(self, item: _Item, cost_us: int) -> None:
        self.flows[item.work.flow].virtual_us += cost_us - item.charged_us
        item.charged_us = 0


@dataclass(frozen=True, slots=True)
class _Finished:
    at_us: int
    lost_by: tuple[str, ...]

    def remembered(self, now_us: int) -> bool:
        return self.at_us > now_us - FINISHED_FOR_US


@dataclass
class _Queue:
    """The state of one queue."""

    items: dict[str, _Item] = field(default_factory=dict)
    """Waiting and claimed, by id."""
    levels: dict[int, _Level] = field(default_factory=dict)
    claims: dict[str, int] = field(default_factory=dict)
    """Id -> when its claim expires."""
    finished: OrderedDict[str, _Finished] = field(default_factory=OrderedDict)
    """By id, oldest first."""
    order: int = 0
    token: int = 0
    mean_us: int = FIRST_ESTIMATE_US
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Replaced whenever it is set; waiting claimers look again."""

    def ring(self) -> None:
        self.news.set()
        self.news = asyncio.Event()

    def expire(self, now_us: int) -> None:
        """Work whose claim expired waits again, in its old place."""
        expired = [each for each, expires_us in self.claims.items() if expires_us <= now_us]
        for each in expired:
            item = self.items[each]
            item.lost_by = (*item.lost_by, item.worker)
            del self.claims[each]
            self.levels[item.work.priority].wait(item)
        if expired:
            self.ring()

    def add(self, work: Work, now_us: int) -> None:
        self.order += 1
        item = self.items[work.id] = _Item(work, self.order)
        earlier = self.finished.pop(work.id, None)
        if earlier is not None and earlier.remembered(now_us):
            item.lost_by, item.deliveries = earlier.lost_by, len(earlier.lost_by)
        level = self.levels.setdefault(work.priority, _Level())
        level.join(work.flow)
        level.wait(item)
        self.ring()

    def take(self) -> _Item | None:
        for priority in sorted(self.levels, reverse=True):
            level = self.levels[priority]
            found = level.next()
            if found is not None:
                item = self.items[found]
                level.withdraw(item)
                level.serve(item, self.mean_us)
                return item
        return None

    def held(self, claim: Claim) -> _Item | None:
        """The item, when ``claim`` holds it. A claim that expired does until somebody else takes the work."""
        item = self.items.get(claim.work.id)
        return item if item is not None and item.token == claim.token else None

    def resume(self, item: _Item) -> _Level:
        """Take it out of the claims; of an expired claim, undo that it was lost."""
        level = self.levels[item.work.priority]
        if self.claims.pop(item.work.id, None) is None:
            level.withdraw(item)
            item.lost_by = item.lost_by[:-1]
        return level

    def remove(self, item: _Item, now_us: int) -> None:
        level = self.levels[item.work.priority]
        level.leave(item.work.flow)
        if not level.work:
            del self.levels[item.work.priority]
        del self.items[item.work.id]
        self.finished[item.work.id] = _Finished(now_us, item.lost_by)
        while len(self.finished) > FINISHED_MAX or not next(iter(self.finished.values())).remembered(now_us):
            self.finished.popitem(last=False)

    def state(self, each: str, now_us: int) -> WorkState:
        if each in self.claims:
            return WorkState.CLAIMED
        if each in self.items:
            return WorkState.WAITING
        earlier = self.finished.get(each)
        return WorkState.FINISHED if earlier is not None and earlier.remembered(now_us) else WorkState.UNKNOWN


class MemoryWorkQueues:
    """See ``shared.cache.WorkQueues``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[str, _Queue] = {}

    async def add(self, queue: str, work: Work) -> bool:
        state, now_us = self._current(queue)
        if work.id in state.items:
            return False
        state.add(work, now_us)
        return True

    async def claim(self, queue: str, worker: str, ttl_s: float, wait_s: float) -> Claim | None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        ttl_us, loop = microseconds(ttl_s), asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while True:
            state, now_us = self._current(queue)
            item = state.take()
            if item is not None:
                return _claimed(state, item, worker, now_us, ttl_us)
            left_s = deadline - loop.time()
            if left_s <= 0:
                return None
            expiry_s = min(((expires_us - now_us) / SECOND_US for expires_us in state.claims.values()), default=left_s)
            try:
                async with asyncio.timeout(min(left_s, expiry_s)):
                    await state.news.wait()
            except TimeoutError:
                continue

    async def renew(self, queue: str, claim: Claim, ttl_s: float) -> bool:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        ttl_us = microseconds(ttl_s)
        state, now_us = self._current(queue)
        item = state.held(claim)
        if item is None:
            return False
        state.resume(item)
        state.claims[claim.work.id] = now_us + ttl_us
        return True

    async def finish(self, queue: str, claim: Claim, cost_ns: int) -> bool:
        state, now_us = self._current(queue)
        item, cost_us = state.held(claim), cost_ns // MICROSECOND_NS
        if item is None:
            return False
        state.resume(item).charge_instead(item, cost_us)
        state.mean_us += (cost_us - state.mean_us) // SMOOTHING
        state.remove(item, now_us)
        return True

    async def give_back(self, queue: str, claim: Claim) -> bool:
        state, _ = self._current(queue)
        item = state.held(claim)
        if item is None:
            return False
        level = state.resume(item)
        level.charge_instead(item, 0)
        item.token, item.worker, item.deliveries = 0, "", item.deliveries - 1
        level.wait(item)
        state.ring()
        return True

    async def states(self, queue: str, ids: Sequence[str]) -> Mapping[str, WorkState]:
        state, now_us = self._current(queue)
        return {each: state.state(each, now_us) for each in ids}

    async def depth(self, queue: str) -> Depth:
        state, _ = self._current(queue)
        return Depth(waiting=len(state.items) - len(state.claims), claimed=len(state.claims))

    def _current(self, name: str) -> tuple[_Queue, int]:
        """The queue as it is now, and the time in microseconds."""
        state, now_us = self._queues.setdefault(name, _Queue()), self._clock.monotonic_ns() // MICROSECOND_NS
        state.expire(now_us)
        return state, now_us


def microseconds(ttl_s: float) -> int:
    """A time to live, at least 1. Raises ``ValueError`` when it is not positive."""
    if ttl_s <= 0:
        raise ValueError(f"a time to live of {ttl_s} s")
    return max(1, round(ttl_s * SECOND_US))


def _claimed(state: _Queue, item: _Item, worker: str, now_us: int, ttl_us: int) -> Claim:
    expires_us = now_us + ttl_us
    state.token = item.token = max(state.token + 1, now_us)
    item.worker, item.deliveries = worker, item.deliveries + 1
    if expires_us < min(state.claims.values(), default=expires_us + 1):
        state.ring()  # those who sleep until the next expiry slept for too long
    state.claims[item.work.id] = expires_us
    return Claim(work=item.work, worker=worker, token=item.token, deliveries=item.deliveries, lost_by=item.lost_by)
