"""Work queues in dictionaries, on a clock that is passed in; see ``shared.cache.WorkQueues`` for the rules."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.cache import Claim, Depth, Work, WorkState
from shared.clock import SECOND_NS, Clock

FINISHED_MAX = 10_000
"""Ids of finished work remembered per queue."""
FIRST_ESTIMATE_NS = SECOND_NS
"""What a claim is charged before anything has finished."""
SMOOTHING = 8
"""The mean cost follows a new one by 1/8."""


@dataclass
class _Item:
    work: Work
    deliveries: int = 0
    lost_by: tuple[str, ...] = ()
    worker: str = ""
    token: int = 0
    charged_ns: int = 0
    expires_ns: int = 0


@dataclass
class _Queue:
    """The state of one queue."""

    items: dict[str, _Item] = field(default_factory=dict)
    """Waiting and claimed, by id."""
    waiting: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    """(priority, flow) -> ids, oldest first; no empty lists."""
    claimed: dict[str, None] = field(default_factory=dict)
    virtual_ns: dict[tuple[int, str], int] = field(default_factory=dict)
    floor_ns: int = 0
    """Virtual time of the flow served last."""
    mean_ns: int = FIRST_ESTIMATE_NS
    last_token: int = 0
    finished: OrderedDict[str, None] = field(default_factory=OrderedDict)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def put(self, item: _Item, *, front: bool) -> None:
        lane = (item.work.priority, item.work.flow)
        if lane not in self.waiting:
            self.waiting[lane] = []
            self.virtual_ns[lane] = max(self.virtual_ns.get(lane, 0), self.floor_ns)
        self.waiting[lane].insert(0 if front else len(self.waiting[lane]), item.work.id)
        item.worker = ""

    def take(self) -> _Item | None:
        if not self.waiting:
            return None
        lane = min(self.waiting, key=lambda lane: (-lane[0], self.virtual_ns[lane], lane[1]))
        ids = self.waiting[lane]
        item = self.items[ids.pop(0)]
        if not ids:
            del self.waiting[lane]
        self.floor_ns = self.virtual_ns[lane]
        item.charged_ns = self.mean_ns
        self.virtual_ns[lane] += item.charged_ns
        self.claimed[item.work.id] = None
        return item

    def refund(self, item: _Item, cost_ns: int) -> None:
        """Replace what the claim was charged by what it cost."""
        lane = (item.work.priority, item.work.flow)
        self.virtual_ns[lane] = self.virtual_ns.get(lane, self.floor_ns) + cost_ns - item.charged_ns
        item.charged_ns = 0

    def forget_idle_lanes(self) -> None:
        busy = {(item.work.priority, item.work.flow) for item in self.items.values()}
        for lane in [lane for lane in self.virtual_ns if lane not in busy and self.virtual_ns[lane] <= self.floor_ns]:
            del self.virtual_ns[lane]


class MemoryWorkQueues:
    """See ``shared.cache.WorkQueues``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[str, _Queue] = {}

    async def add(self, queue: str, work: Work) -> bool:
        state = self._queue(queue)
        if work.id in state.items:
            return False
        state.finished.pop(work.id, None)
        item = state.items[work.id] = _Item(work)
        state.put(item, front=False)
        async with state.news:
            state.news.notify()
        return True

    async def claim(self, queue: str, worker: str, ttl_s: float, wait_s: float) -> Claim | None:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        if ttl_s <= 0:
            raise ValueError(f"a time to live of {ttl_s} s")
        state, loop = self._queue(queue), asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while True:
            self._expire(state)
            item = state.take()
            if item is not None:
                return self._claimed(state, item, worker, ttl_s)
            left_s = deadline - loop.time()
            if left_s <= 0:
                return None
            try:
                async with asyncio.timeout(min(left_s, self._next_expiry_s(state))), state.news:
                    await state.news.wait()
            except TimeoutError:
                continue

    async def renew(self, queue: str, claim: Claim, ttl_s: float) -> bool:
        """Raises ``ValueError`` when ``ttl_s`` is not positive."""
        if ttl_s <= 0:
            raise ValueError(f"a time to live of {ttl_s} s")
        item = self._held(queue, claim)
        if item is None:
            return False
        item.expires_ns = self._clock.monotonic_ns() + round(ttl_s * SECOND_NS)
        return True

    async def finish(self, queue: str, claim: Claim, cost_ns: int) -> bool:
        state, item = self._queue(queue), self._held(queue, claim)
        if item is None:
            return False
        state.refund(item, cost_ns)
        state.mean_ns += (cost_ns - state.mean_ns) // SMOOTHING
        del state.items[claim.work.id], state.claimed[claim.work.id]
        state.finished[claim.work.id] = None
        if len(state.finished) > FINISHED_MAX:
            state.finished.popitem(last=False)
        state.forget_idle_lanes()
        return True

    async def give_back(self, queue: str, claim: Claim) -> bool:
        state, item = self._queue(queue), self._held(queue, claim)
        if item is None:
            return False
        state.refund(item, 0)
        item.deliveries -= 1
        del state.claimed[claim.work.id]
        state.put(item, front=True)
        async with state.news:
            state.news.notify()
        return True

    async def states(self, queue: str, ids: Sequence[str]) -> Mapping[str, WorkState]:
        state = self._queue(queue)
        return {each: _state(state, each) for each in ids}

    async def depth(self, queue: str) -> Depth:
        state = self._queue(queue)
        return Depth(waiting=len(state.items) - len(state.claimed), claimed=len(state.claimed))

    def _queue(self, name: str) -> _Queue:
        return self._queues.setdefault(name, _Queue())

    def _claimed(self, state: _Queue, item: _Item, worker: str, ttl_s: float) -> Claim:
        now_ns = self._clock.monotonic_ns()
        state.last_token = item.token = max(state.last_token + 1, now_ns // 1000)
        item.worker, item.deliveries = worker, item.deliveries + 1
        item.expires_ns = now_ns + round(ttl_s * SECOND_NS)
        return Claim(work=item.work, worker=worker, token=item.token, deliveries=item.deliveries, lost_by=item.lost_by)

    def _held(self, queue: str, claim: Claim) -> _Item | None:
        """The item, when ``claim`` still holds it. An expired claim that nobody else took up is still held."""
        item = self._queue(queue).items.get(claim.work.id)
        return item if item is not None and item.worker and item.token == claim.token else None

    def _expire(self, state: _Queue) -> None:
        now_ns = self._clock.monotonic_ns()
        for each in [each for each in state.claimed if state.items[each].expires_ns <= now_ns]:
            item = state.items[each]
            item.lost_by = (*item.lost_by, item.worker)
            del state.claimed[each]
            state.put(item, front=True)

    def _next_expiry_s(self, state: _Queue) -> float:
        now_ns = self._clock.monotonic_ns()
        return min(((state.items[each].expires_ns - now_ns) / SECOND_NS for each in state.claimed), default=3600.0)


def _state(state: _Queue, each: str) -> WorkState:
    if each in state.claimed:
        return WorkState.CLAIMED
    if each in state.items:
        return WorkState.WAITING
    return WorkState.FINISHED if each in state.finished else WorkState.UNKNOWN
