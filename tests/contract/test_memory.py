"""The memory adapters honour their ports, and what they promise beyond them."""

from __future__ import annotations

import pytest

from shared import topics
from shared.bus.memory import BusFull, MemoryBus
from shared.cache.memory import MemoryCache, MemoryCacheBackend
from shared.clock import SECOND_NS, ManualClock, SystemClock
from shared.store.memory import MemoryStore
from tests.aio import on_loop
from tests.contract.bus_contract import TOPIC, BusContract, a_record, drained, values
from tests.contract.cache_contract import CacheContract
from tests.contract.queue_contract import QueueContract
from tests.contract.store_contract import StoreContract


class TestMemoryBus(BusContract):
    def make(self) -> MemoryBus:
        return MemoryBus()

    @on_loop
    async def test_a_full_log_refuses_rather_than_lose_what_a_group_has_not_committed(self) -> None:
        async with MemoryBus(records_max=4) as bus, bus.subscribe(TOPIC, "g") as member:
            for number in range(4):
                await bus.publish(TOPIC, a_record(value=str(number).encode()))
            with pytest.raises(BusFull):
                await bus.publish(TOPIC, a_record())
            found = await drained(member)
            assert values(found) == [b"0", b"1", b"2", b"3"]
            await member.commit(found[0])
            await bus.publish(TOPIC, a_record(value=b"4"))
            assert values(await drained(member)) == [b"4"]

    @on_loop
    async def test_the_slowest_group_decides_what_may_go(self) -> None:
        async with MemoryBus(records_max=2) as bus, bus.subscribe(TOPIC, "fast") as fast, bus.subscribe(TOPIC, "slow"):
            for _ in range(2):
                await bus.publish(TOPIC, a_record())
            for delivery in await drained(fast):
                await fast.commit(delivery)
            with pytest.raises(BusFull):
                await bus.publish(TOPIC, a_record())

    @on_loop
    async def test_a_group_whose_members_are_gone_does_not_fill_the_log_for_ever(self) -> None:
        async with MemoryBus(records_max=2) as bus:
            async with bus.subscribe(TOPIC, "watcher that left"):
                pass
            for _ in range(9):
                await bus.publish(TOPIC, a_record())

    @on_loop
    async def test_a_topic_nobody_reads_keeps_its_newest_records(self) -> None:
        async with MemoryBus(records_max=4) as bus:
            for number in range(9):
                await bus.publish(TOPIC, a_record(value=str(number).encode()))
            async with bus.subscribe(TOPIC, "late") as member:
                kept = values(await drained(member))
        assert kept[-1] == b"8"
        assert kept == sorted(kept)
        assert 2 <= len(kept) <= 4

    @on_loop
    async def test_a_compacted_topic_keeps_the_newest_record_of_every_key(self) -> None:
        async with MemoryBus(records_max=8) as bus:
            await bus.publish(topics.SKILLS, a_record("rare", b"rare"))
            for number in range(200):
                await bus.publish(topics.SKILLS, a_record(f"k{number % 3}", str(number).encode()))
            async with bus.subscribe(topics.SKILLS, "late") as member:
                newest = {delivery.record.key: delivery.record.value for delivery in await drained(member)}
        assert newest == {"rare": b"rare", "k0": b"198", "k1": b"199", "k2": b"197"}

    @on_loop
    async def test_a_busy_partition_hides_no_other(self) -> None:
        async with MemoryBus() as bus, bus.subscribe(TOPIC, "g") as member:
            for _ in range(50):
                await bus.publish(TOPIC, a_record("busy"))
            for number in range(20):
                await bus.publish(TOPIC, a_record(f"k{number}"))
            first = [await member.poll(0) for _ in range(16)]
        assert len({delivery.partition for delivery in first if delivery is not None}) > 8


class TestMemoryStore(StoreContract):
    def make(self) -> MemoryStore:
        return MemoryStore()


class TestMemoryCache(CacheContract):
    def setup_method(self) -> None:
        self.clock = ManualClock()

    def make(self) -> MemoryCacheBackend:
        return MemoryCacheBackend(self.clock)

    def advance(self, seconds: float) -> None:
        self.clock.advance(round(seconds * SECOND_NS))

    @on_loop
    async def test_a_full_cache_forgets_what_was_not_used_for_longest(self) -> None:
        cache = MemoryCache(self.clock, entries_max=2)
        await cache.put("a", b"")
        await cache.put("b", b"")
        await cache.get("a")
        await cache.put("c", b"")
        assert [await cache.get(key) for key in "abc"] == [b"", None, b""]


class TestMemoryQueues(QueueContract):
    def setup_method(self) -> None:
        self.clock = ManualClock()

    def make(self) -> MemoryCacheBackend:
        return MemoryCacheBackend(self.clock)

    def make_live(self) -> MemoryCacheBackend:
        return MemoryCacheBackend(SystemClock())

    def advance(self, seconds: float) -> None:
        self.clock.advance(round(seconds * SECOND_NS))
