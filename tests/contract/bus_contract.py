"""What every bus promises. An adapter's test class inherits this and says how to make one."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from shared import topics
from shared.bus import Bus, Delivery, Record, Subscription, key_bytes, key_text
from shared.errors import Fatal
from tests.aio import on_loop

TOPIC = topics.FACTS
MILLISECOND_NS = 1_000_000


def a_record(key: str = "k", value: bytes = b"v") -> Record:
    return Record(key=key, value=value, headers={})


async def drained(*members: Subscription, patience_s: float = 0, least: int = 0) -> list[Delivery]:
    """Everything there is to read, by one member after the other. ``least`` records must come, whenever that is;
    whether there are more is seen within ``patience_s``.
    """
    found: list[Delivery] = []
    while True:
        before = len(found)
        for member in members:
            while (delivery := await member.poll(patience_s)) is not None:
                found.append(delivery)
        if len(found) >= least and len(found) == before:
            return found


def values(deliveries: list[Delivery]) -> list[bytes]:
    return [delivery.record.value for delivery in deliveries]


@asynccontextmanager
async def together(*members: Subscription) -> AsyncIterator[None]:
    """All joined at once: a cluster forms a group once for those, and anew for everyone who comes later."""
    async with AsyncExitStack() as stack:
        async with asyncio.TaskGroup() as joining:
            for member in members:
                joining.create_task(stack.enter_async_context(member))
        yield


class BusContract(ABC):
    patience_s: float = 0
    """How long a record that was published may take to arrive."""

    @abstractmethod
    def make(self) -> Bus:
        """A bus without records, not open yet."""

    async def settled(self, *members: Subscription) -> None:  # noqa: B027 - where joining is done at once, nothing
        """Wait until ``members``, all of their group, have divided the partitions of ``TOPIC`` among them."""

    async def drained(self, member: Subscription, least: int) -> list[Delivery]:
        return await drained(member, patience_s=self.patience_s, least=least)

    @on_loop
    async def test_bytes_and_headers_arrive_as_they_were_sent(self) -> None:
        sent = Record(key="kéy", value=bytes(range(256)), headers={"ce_id": b"\x00\xff", "empty": b""})
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            await bus.publish(TOPIC, sent)
            delivery = await member.poll(1 + self.patience_s)
            assert delivery is not None
            assert (delivery.topic, delivery.record) == (TOPIC, sent)

    @on_loop
    async def test_a_delivery_tells_when_it_was_published(self) -> None:
        before_ns = time.time_ns()
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            await bus.publish(TOPIC, a_record())
            after_ns = time.time_ns()
            found = [await member.poll(1 + self.patience_s), *[each async for each in bus.history(TOPIC)]]
        for delivery in found:
            assert delivery is not None
            assert before_ns - MILLISECOND_NS < delivery.published_ns <= after_ns

    @on_loop
    async def test_a_key_that_is_not_text_goes_round_unchanged(self) -> None:
        sent = Record(key=key_text(b"\xff\x00k"), value=b"v", headers={})
        async with self.make() as bus:
            await bus.publish(TOPIC, sent)
            assert [delivery.record async for delivery in bus.history(TOPIC, sent.key)] == [sent]
        assert key_bytes(sent.key) == b"\xff\x00k"

    @on_loop
    async def test_the_sender_cannot_change_what_it_sent(self) -> None:
        headers = {"a": b"1"}
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            await bus.publish(TOPIC, Record(key="k", value=b"v", headers=headers))
            headers["a"] = b"2"
            delivery = await member.poll(1 + self.patience_s)
            assert delivery is not None
            assert delivery.record.headers == {"a": b"1"}

    @on_loop
    async def test_order_is_kept_per_key_and_a_key_stays_on_its_partition(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            for number in range(40):
                await bus.publish(TOPIC, a_record(f"k{number % 7}", str(number).encode()))
            found = await self.drained(member, 40)
        assert len(found) == 40
        for key in {delivery.record.key for delivery in found}:
            mine = [delivery for delivery in found if delivery.record.key == key]
            assert values(mine) == sorted(values(mine), key=int)
            assert len({delivery.partition for delivery in mine}) == 1

    @on_loop
    async def test_offsets_of_a_partition_grow(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            for _ in range(3):
                await bus.publish(TOPIC, a_record())
            offsets = [delivery.offset for delivery in await self.drained(member, 3)]
        assert offsets == sorted(set(offsets))

    @on_loop
    async def test_what_was_not_committed_is_delivered_again_after_reopening(self) -> None:
        async with self.make() as bus:
            for value in (b"1", b"2", b"3"):
                await bus.publish(TOPIC, a_record(value=value))
            async with bus.subscribe(TOPIC, "g") as member:
                first, *_ = await self.drained(member, 3)
                assert await member.commit(first)
            async with bus.subscribe(TOPIC, "g") as member:
                assert values(await self.drained(member, 2)) == [b"2", b"3"]

    @on_loop
    async def test_a_subscription_can_be_opened_again(self) -> None:
        async with self.make() as bus:
            member = bus.subscribe(TOPIC, "g")
            await bus.publish(TOPIC, a_record())
            for _ in range(2):
                async with member:
                    member.pause()
                    assert await member.poll(0) is None
                    member.resume()
                    assert await member.poll(1 + self.patience_s) is not None

    @on_loop
    async def test_a_commit_covers_its_own_partition_only(self) -> None:
        async with self.make() as bus:
            for number in range(30):
                await bus.publish(TOPIC, a_record(f"k{number}"))
            async with bus.subscribe(TOPIC, "g") as member:
                found = await self.drained(member, 30)
                committed = found[-1]
                await member.commit(committed)
            left = [d for d in found if d.partition != committed.partition]
            async with bus.subscribe(TOPIC, "g") as member:
                again = await self.drained(member, len(left))
        assert sorted(d.record.key for d in again) == sorted(d.record.key for d in left)

    @on_loop
    async def test_groups_do_not_disturb_each_other(self) -> None:
        async with self.make() as bus:
            a, b = bus.subscribe(TOPIC, "a"), bus.subscribe(TOPIC, "b")
            async with together(a, b):
                await bus.publish(TOPIC, a_record())
                (delivery,) = await self.drained(a, 1)
                await a.commit(delivery)
                assert len(await self.drained(b, 1)) == 1

    @on_loop
    async def test_a_group_that_subscribes_late_sees_what_came_before(self) -> None:
        async with self.make() as bus:
            await bus.publish(TOPIC, a_record(value=b"early"))
            async with bus.subscribe(TOPIC, "g") as member:
                assert values(await self.drained(member, 1)) == [b"early"]

    @on_loop
    async def test_topics_do_not_mix(self) -> None:
        async with self.make() as bus, bus.subscribe(topics.SKILLS, "g") as member:
            await bus.publish(TOPIC, a_record())
            assert await self.drained(member, 0) == []

    @on_loop
    async def test_members_of_a_group_share_the_partitions(self) -> None:
        async with self.make() as bus:
            one, two = bus.subscribe(TOPIC, "g"), bus.subscribe(TOPIC, "g")
            async with together(one, two):
                await self.settled(one, two)
                for number in range(60):
                    await bus.publish(TOPIC, a_record(f"k{number}"))
                first, second = await self.drained(one, 1), await self.drained(two, 1)
                while len(first) + len(second) < 60:
                    first += await self.drained(one, 0)
                    second += await self.drained(two, 0)
        assert len(first) + len(second) == 60
        assert first
        assert second
        assert not {d.partition for d in first} & {d.partition for d in second}

    @on_loop
    async def test_what_a_member_leaves_uncommitted_goes_to_the_others(self) -> None:
        async with self.make() as bus, AsyncExitStack() as to_the_end:
            stays, leaves = bus.subscribe(TOPIC, "g"), bus.subscribe(TOPIC, "g")
            async with AsyncExitStack() as for_now:
                await asyncio.gather(to_the_end.enter_async_context(stays), for_now.enter_async_context(leaves))
                await self.settled(stays, leaves)
                for number in range(60):
                    await bus.publish(TOPIC, a_record(f"k{number}"))
                kept, left = await self.drained(stays, 1), await self.drained(leaves, 1)
                while len(kept) + len(left) < 60:
                    kept += await self.drained(stays, 0)
                    left += await self.drained(leaves, 0)
                for delivery in kept:
                    await stays.commit(delivery)
            await self.settled(stays)
            assert sorted(d.record.key for d in await self.drained(stays, len(left))) == sorted(
                d.record.key for d in left
            )

    @on_loop
    async def test_a_commit_for_a_partition_that_moved_away_says_so_and_commits_nothing(self) -> None:
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(self.make())
            one = await stack.enter_async_context(bus.subscribe(TOPIC, "g"))
            for number in range(60):
                await bus.publish(TOPIC, a_record(f"k{number}"))
            found = await self.drained(one, 60)
            two = await stack.enter_async_context(bus.subscribe(TOPIC, "g"))
            await self.settled(one, two)
            moved = [delivery for delivery in found if not await one.commit(delivery)]
            assert moved
            assert sorted(d.record.key for d in await self.drained(two, len(moved))) == sorted(
                d.record.key for d in moved
            )

    @on_loop
    async def test_a_late_commit_never_moves_a_group_back(self) -> None:
        async with self.make() as bus:
            async with bus.subscribe(TOPIC, "g") as slow:
                for value in (b"1", b"2", b"3"):
                    await bus.publish(TOPIC, a_record(value=value))
                first = await slow.poll(1 + self.patience_s)
                second = await slow.poll(1 + self.patience_s)
                assert first is not None
                assert second is not None
                assert await slow.commit(second)
                assert not await slow.commit(first)
            async with bus.subscribe(TOPIC, "g") as again:
                assert values(await self.drained(again, 1)) == [b"3"]

    @on_loop
    async def test_pause_delivers_nothing_and_loses_nothing(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            await bus.publish(TOPIC, a_record(value=b"1"))
            await member.poll(1 + self.patience_s)
            member.pause()
            await bus.publish(TOPIC, a_record(value=b"2"))
            assert await member.poll(0) is None
            member.resume()
            assert values(await self.drained(member, 1)) == [b"2"]

    @on_loop
    async def test_a_waiting_poll_wakes_up_for_a_record(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            poll = asyncio.create_task(member.poll(60))
            await asyncio.sleep(0)
            await bus.publish(TOPIC, a_record())
            assert await poll is not None

    @on_loop
    async def test_a_waiting_poll_wakes_up_when_resumed(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            member.pause()
            await bus.publish(TOPIC, a_record())
            poll = asyncio.create_task(member.poll(60))
            await asyncio.sleep(0)
            member.resume()
            assert await poll is not None

    @on_loop
    async def test_a_closed_bus_and_a_closed_subscription_refuse_work(self) -> None:
        bus = self.make()
        async with bus:
            member = bus.subscribe(TOPIC, "g")
            async with member:
                await bus.publish(TOPIC, a_record())
                delivery = await member.poll(1 + self.patience_s)
            assert delivery is not None
            with pytest.raises(Fatal):
                await member.poll(0)
            with pytest.raises(Fatal):
                await member.commit(delivery)
        with pytest.raises(Fatal):
            await bus.publish(TOPIC, a_record())

    @on_loop
    async def test_an_unknown_topic_is_a_bug_of_ours(self) -> None:
        async with self.make() as bus:
            with pytest.raises(Fatal, match="search.fact.v1"):
                await bus.publish("search.fact.v1", a_record())

    @on_loop
    async def test_history_is_what_a_topic_holds_under_a_key_whoever_has_read_it(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            for number in range(30):
                await bus.publish(TOPIC, a_record(f"k{number % 5}", str(number).encode()))
            for delivery in await self.drained(member, 30):
                await member.commit(delivery)
            found = [delivery async for delivery in bus.history(TOPIC, "k3")]
            assert values(found) == [b"3", b"8", b"13", b"18", b"23", b"28"]
            assert len([delivery async for delivery in bus.history(TOPIC)]) == 30
            assert [delivery async for delivery in bus.history(TOPIC, "nobody")] == []
            assert [delivery async for delivery in bus.history(topics.SKILLS)] == []
            assert await self.drained(member, 0) == []

    @on_loop
    async def test_lag_counts_what_the_group_has_not_committed(self) -> None:
        async with self.make() as bus, bus.subscribe(TOPIC, "g") as member:
            for number in range(6):
                await bus.publish(TOPIC, a_record(value=str(number).encode()))
            found = await self.drained(member, 6)
            assert member.lag() == 6
            await member.commit(found[3])
            assert member.lag() == 2

    @on_loop
    async def test_an_open_bus_answers_a_ping(self) -> None:
        async with self.make() as bus:
            await bus.ping()
