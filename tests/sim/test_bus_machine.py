"""The memory bus against a model, under any sequence of publishing, joining, polling, committing and crashing."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from shared import topics
from shared.bus import Delivery, Record, Subscription
from shared.bus.memory import MemoryBus

TOPIC = topics.SKILLS  # four partitions: members come to blows quickly
GROUPS = ("a", "b")
KEYS = [f"key{number}" for number in range(8)]


class BusMachine(RuleBasedStateMachine):
    """Model: per partition the list of values published, per group the offset committed."""

    members: Bundle[Any] = Bundle("members")
    deliveries: Bundle[Any] = Bundle("deliveries")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.bus = MemoryBus()
        self.run(self.bus.__aenter__())
        self.logs: dict[int, list[bytes]] = {}
        self.partition_of: dict[str, int] = {}
        self.unplaced: dict[str, list[bytes]] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.seen: dict[Subscription, dict[int, int]] = {}
        self.start: dict[Subscription, dict[int, int]] = {}
        self.group_of: dict[Subscription, str] = {}
        self.paused: set[Subscription] = set()
        self.published = 0

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @rule(key=st.sampled_from(KEYS))
    def publish(self, key: str) -> None:
        value = f"{key}:{self.published}".encode()
        self.published += 1
        self.run(self.bus.publish(TOPIC, Record(key=key, value=value, headers={})))
        self.unplaced.setdefault(key, []).append(value)

    @rule(target=members, group=st.sampled_from(GROUPS))
    def join(self, group: str) -> Subscription:
        member = self.run(self.bus.subscribe(TOPIC, group).__aenter__())
        self.group_of[member] = group
        self._rebalanced(group)
        return member

    @rule(member=consumes(members))
    def crash(self, member: Subscription) -> None:
        """Leaving and crashing are the same to the bus: nothing is committed on the way out."""
        self.run(member.__aexit__())
        group = self.group_of.pop(member)
        self.seen.pop(member)
        self.paused.discard(member)
        self._rebalanced(group)

    @rule(target=deliveries, member=members)
    def poll(self, member: Subscription) -> Any:
        delivery = self.run(member.poll(0))
        if delivery is None:
            return multiple()
        assert member not in self.paused
        self._check(member, delivery)
        return member, delivery

    @rule(taken=consumes(deliveries))
    def commit(self, taken: tuple[Subscription, Delivery]) -> None:
        member, delivery = taken
        if member in self.group_of and self.run(member.commit(delivery)):
            self.committed[self.group_of[member], delivery.partition] = delivery.offset + 1

    @rule(member=members)
    def pause(self, member: Subscription) -> None:
        member.pause()
        self.paused.add(member)

    @rule(member=members)
    def resume(self, member: Subscription) -> None:
        member.resume()
        self.paused.discard(member)

    @invariant()
    def a_partition_has_one_owner_in_a_group(self) -> None:
        for group in GROUPS:
            owned = [p for member in self.group_of if self.group_of[member] == group for p in self.seen[member]]
            assert len(owned) == len(set(owned))

    def teardown(self) -> None:
        """Whatever happened, groups that read on get everything from their committed offsets to the end."""
        for member in list(self.group_of):
            self.run(member.__aexit__())
        for group in GROUPS:
            member = self.run(self.bus.subscribe(TOPIC, group).__aenter__())
            self.group_of = {member: group}
            self._rebalanced(group)
            while (delivery := self.run(member.poll(0))) is not None:
                self._check(member, delivery)
            for partition, log in self.logs.items():
                start = self.start[member].get(partition, 0)
                assert self.seen[member].get(partition, start) == len(log)
            self.run(member.__aexit__())
        assert not any(self.unplaced.values())
        self.loop.close()

    def _rebalanced(self, group: str) -> None:
        """Everybody starts over from what is committed now; a later commit does not move who reads already."""
        for member, its_group in self.group_of.items():
            if its_group == group:
                self.seen[member] = {}
                self.start[member] = {p: offset for (owner, p), offset in self.committed.items() if owner == group}

    def _check(self, member: Subscription, delivery: Delivery) -> None:
        key, value, partition = delivery.record.key, delivery.record.value, delivery.partition
        assert self.partition_of.setdefault(key, partition) == partition
        log = self.logs.setdefault(partition, [])
        if delivery.offset == len(log):  # first time anybody reads it: it must be its key's next value
            log.append(value)
            assert self.unplaced[key].pop(0) == value
        assert log[delivery.offset] == value
        assert delivery.offset == self.seen[member].get(partition, self.start[member].get(partition, 0))
        self.seen[member][partition] = delivery.offset + 1


TestBusMachine = BusMachine.TestCase
TestBusMachine.settings = settings(max_examples=60, stateful_step_count=40)
