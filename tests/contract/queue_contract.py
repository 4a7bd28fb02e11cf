"""What every work queue promises. An adapter's test class inherits this and says how to make one and pass time."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping

import pytest

from shared.cache import CacheBackend, Claim, Depth, Work, WorkQueues, WorkState
from shared.clock import SECOND_NS
from tests.aio import on_loop

Q = "cpu-x86_64"


def a_work(name: str, flow: str = "f", priority: int = 0, body: bytes = b"\x00\xff") -> Work:
    return Work(id=name, flow=flow, body=body, priority=priority)


async def claimed(queues: WorkQueues, worker: str = "w", ttl_s: float = 10) -> Claim:
    """The next claim; there must be one."""
    claim = await queues.claim(Q, worker, ttl_s, 0)
    assert claim is not None
    return claim


async def served(queues: WorkQueues, count: int, cost_s: Mapping[str, float]) -> Counter[str]:
    """How often each flow is served by one worker that finishes ``count`` pieces of work at each flow's cost."""
    flows: Counter[str] = Counter()
    for _ in range(count):
        claim = await claimed(queues)
        flows[claim.work.flow] += 1
        assert await queues.finish(Q, claim, round(cost_s[claim.work.flow] * SECOND_NS))
    return flows


class QueueContract(ABC):
    @abstractmethod
    def make(self) -> CacheBackend:
        """An empty one, not open yet, on the clock that ``advance`` moves."""

    @abstractmethod
    def make_live(self) -> CacheBackend:
        """An empty one, not open yet, on the clock of the machine."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass for the queues."""

    # --- order --------------------------------------------------------------------------------------------------------

    @on_loop
    async def test_work_comes_back_as_it_was_added_oldest_first(self) -> None:
        works = [
            a_work("b", body=b""),
            a_work("a", "f", 0, bytes(range(256))),
            a_work("ü \n{}", "f", 0, b"x" * 100_000),
        ]
        async with self.make() as backend:
            for work in works:
                assert await backend.queues.add(Q, work)
            claims = [await claimed(backend.queues, f"w{n}") for n in range(3)]
            assert [claim.work for claim in claims] == works
            assert [claim.worker for claim in claims] == ["w0", "w1", "w2"]
            assert [(claim.deliveries, claim.lost_by) for claim in claims] == [(1, ())] * 3
            tokens = [claim.token for claim in claims]
            assert tokens == sorted(set(tokens))
            assert await backend.queues.claim(Q, "w", 10, 0) is None

    @on_loop
    async def test_queues_are_apart(self) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            await backend.queues.add("h200", a_work("a", "other"))
            other = await backend.queues.claim("h200", "w", 10, 0)
            assert other is not None
            assert other.work.flow == "other"
            assert await backend.queues.depth(Q) == Depth(waiting=1, claimed=0)
            assert await backend.queues.depth("h200") == Depth(waiting=0, claimed=1)

    @on_loop
    async def test_adding_what_is_there_changes_nothing(self) -> None:
        async with self.make() as backend:
            assert await backend.queues.add(Q, a_work("a"))
            assert not await backend.queues.add(Q, a_work("a", "other flow", 7))
            claim = await claimed(backend.queues)
            assert claim.work == a_work("a")
            assert not await backend.queues.add(Q, a_work("a"))
            assert await backend.queues.finish(Q, claim, 1)
            assert await backend.queues.add(Q, a_work("a"))
            assert (await claimed(backend.queues)).deliveries == 1

    @on_loop
    async def test_higher_priority_goes_first(self) -> None:
        async with self.make() as backend:
            for number, priority in enumerate([0, 5, -3, 2**31 - 1, 5, -(2**31)]):
                await backend.queues.add(Q, a_work(f"{number}", f"flow {number}", priority))
            order = [(await claimed(backend.queues)).work.id for _ in range(6)]
            assert order == ["3", "1", "4", "0", "2", "5"]

    @pytest.mark.parametrize("priority", [2**31, -(2**31) - 1])
    def test_a_priority_has_32_bits(self, priority: int) -> None:
        with pytest.raises(ValueError, match="priority"):
            a_work("a", priority=priority)

    @pytest.mark.parametrize("ttl_s", [0, -1])
    @on_loop
    async def test_a_time_to_live_is_positive(self, ttl_s: float) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            with pytest.raises(ValueError, match="time to live"):
                await backend.queues.claim(Q, "w", ttl_s, 0)
            claim = await claimed(backend.queues)
            with pytest.raises(ValueError, match="time to live"):
                await backend.queues.renew(Q, claim, ttl_s)

    # --- shares -------------------------------------------------------------------------------------------------------

    @on_loop
    async def test_a_small_flow_is_served_at_once_beside_a_huge_one(self) -> None:
        async with self.make() as backend:
            for number in range(300):
                await backend.queues.add(Q, a_work(f"h{number}", "huge"))
            await served(backend.queues, 20, {"huge": 1.0})
            for number in range(3):
                await backend.queues.add(Q, a_work(f"s{number}", "small"))
            assert await served(backend.queues, 7, {"huge": 1.0, "small": 1.0}) == {"huge": 4, "small": 3}

    @on_loop
    async def test_flows_get_equal_worker_time_whatever_their_work_costs(self) -> None:
        cost_s = {"cheap": 0.5, "dear": 5.0}
        async with self.make() as backend:
            for number in range(200):
                await backend.queues.add(Q, a_work(f"c{number}", "cheap"))
                await backend.queues.add(Q, a_work(f"d{number}", "dear"))
            flows = await served(backend.queues, 110, cost_s)
            had_s = {flow: flows[flow] * cost_s[flow] for flow in cost_s}
            assert abs(had_s["cheap"] - had_s["dear"]) <= max(cost_s.values())

    @on_loop
    async def test_a_flow_hoards_no_shares_while_it_is_away(self) -> None:
        async with self.make() as backend:
            for number in range(100):
                await backend.queues.add(Q, a_work(f"a{number}", "present"))
            await backend.queues.add(Q, a_work("first", "returning"))
            await served(backend.queues, 50, {"present": 1.0, "returning": 1.0})
            for number in range(50):
                await backend.queues.add(Q, a_work(f"b{number}", "returning"))
            flows = await served(backend.queues, 20, {"present": 1.0, "returning": 1.0})
            assert abs(flows["present"] - flows["returning"]) <= 2

    @on_loop
    async def test_a_flow_that_asks_for_one_at_a_time_still_pays_for_its_dear_work(self) -> None:
        cost_s = {"one by one": 10.0, "backlog": 1.0}
        async with self.make() as backend:
            for number in range(100):
                await backend.queues.add(Q, a_work(f"b{number}", "backlog"))
            flows: Counter[str] = Counter()
            for number in range(44):
                await backend.queues.add(Q, a_work(f"o{flows['one by one']}", "one by one"))
                flows += await served(backend.queues, 1, cost_s)
                assert number >= 0
            assert 3 <= flows["one by one"] <= 5

    @on_loop
    async def test_a_flow_that_joins_a_priority_is_not_held_to_what_others_had_in_another(self) -> None:
        cost_s = {"low 1": 1.0, "low 2": 1.0, "high": 1000.0}
        async with self.make() as backend:
            for number in range(20):
                await backend.queues.add(Q, a_work(f"1-{number}", "low 1"))
            await served(backend.queues, 2, cost_s)
            for number in range(5):
                await backend.queues.add(Q, a_work(f"h{number}", "high", 9))
            assert await served(backend.queues, 5, cost_s) == {"high": 5}
            for number in range(20):
                await backend.queues.add(Q, a_work(f"2-{number}", "low 2"))
            flows = await served(backend.queues, 10, cost_s)
            assert abs(flows["low 1"] - flows["low 2"]) <= 2

    # --- claims -------------------------------------------------------------------------------------------------------

    @on_loop
    async def test_an_expired_claim_is_delivered_again_before_what_is_younger(self) -> None:
        async with self.make() as backend:
            for name in ("a", "b", "c"):
                await backend.queues.add(Q, a_work(name))
            await claimed(backend.queues, "dies", 10)
            await claimed(backend.queues, "dies too", 9)
            self.advance(10)
            first, second = await claimed(backend.queues, "x"), await claimed(backend.queues, "y")
            assert (first.work.id, first.deliveries, first.lost_by) == ("a", 2, ("dies",))
            assert (second.work.id, second.deliveries, second.lost_by) == ("b", 2, ("dies too",))
            self.advance(10)
            again = await claimed(backend.queues, "z")
            assert (again.work.id, again.deliveries, again.lost_by) == ("a", 3, ("dies", "x"))

    @on_loop
    async def test_renewing_keeps_a_claim(self) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            claim = await claimed(backend.queues, ttl_s=10)
            for _ in range(3):
                self.advance(9)
                assert await backend.queues.renew(Q, claim, 10)
            assert await backend.queues.claim(Q, "other", 10, 0) is None

    @on_loop
    async def test_a_stale_claim_is_refused_everything(self) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            stale = await claimed(backend.queues, "same")
            self.advance(10)
            current = await claimed(backend.queues, "same")
            assert current.token > stale.token
            assert not await backend.queues.renew(Q, stale, 10)
            assert not await backend.queues.give_back(Q, stale)
            assert not await backend.queues.finish(Q, stale, 1)
            assert await backend.queues.finish(Q, current, 1)
            assert not await backend.queues.finish(Q, current, 1)
            assert not await backend.queues.renew(Q, current, 1)
            assert not await backend.queues.give_back(Q, current)

    @on_loop
    async def test_an_expired_claim_holds_until_somebody_else_takes_the_work(self) -> None:
        async with self.make() as backend:
            for name in ("a", "b", "c", "d"):
                await backend.queues.add(Q, a_work(name))
            late = [await claimed(backend.queues, f"w{n}") for n in range(3)]
            self.advance(11)
            assert await backend.queues.depth(Q) == Depth(waiting=4, claimed=0)
            assert await backend.queues.finish(Q, late[0], 1)
            assert await backend.queues.renew(Q, late[1], 10)
            assert await backend.queues.give_back(Q, late[2])
            assert await backend.queues.depth(Q) == Depth(waiting=2, claimed=1)
            again = await claimed(backend.queues, "other")
            assert (again.work.id, again.deliveries, again.lost_by) == ("c", 1, ())
            self.advance(10)
            again = await claimed(backend.queues, "other")
            assert (again.work.id, again.deliveries, again.lost_by) == ("b", 2, ("w1",))

    @on_loop
    async def test_finished_work_that_comes_again_keeps_whom_it_lost_for_an_hour(self) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            await claimed(backend.queues, "dies", 10)
            self.advance(10)
            await claimed(backend.queues, "dies too", 10)
            self.advance(10)
            assert await backend.queues.finish(Q, await claimed(backend.queues, "gives up"), 1)
            await backend.queues.add(Q, a_work("a"))
            again = await claimed(backend.queues, "x")
            assert (again.deliveries, again.lost_by) == (3, ("dies", "dies too"))
            await backend.queues.finish(Q, again, 1)
            self.advance(3600)
            await backend.queues.add(Q, a_work("a"))
            much_later = await claimed(backend.queues, "y")
            assert (much_later.deliveries, much_later.lost_by) == (1, ())

    @on_loop
    async def test_work_given_back_was_never_claimed(self) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            await backend.queues.add(Q, a_work("b"))
            claim = await claimed(backend.queues, "leaves")
            assert await backend.queues.give_back(Q, claim)
            assert not await backend.queues.give_back(Q, claim)
            assert not await backend.queues.renew(Q, claim, 10)
            again = await claimed(backend.queues, "stays")
            assert (again.work.id, again.deliveries, again.lost_by) == ("a", 1, ())

    @on_loop
    async def test_states_and_depth(self) -> None:
        async with self.make() as backend:
            assert await backend.queues.depth(Q) == Depth(waiting=0, claimed=0)
            assert await backend.queues.states(Q, []) == {}
            for name in ("done", "taken", "waits"):
                await backend.queues.add(Q, a_work(name))
            await backend.queues.finish(Q, await claimed(backend.queues), 1)
            await claimed(backend.queues)
            assert await backend.queues.states(Q, ["waits", "taken", "done", "never"]) == {
                "waits": WorkState.WAITING,
                "taken": WorkState.CLAIMED,
                "done": WorkState.FINISHED,
                "never": WorkState.UNKNOWN,
            }
            assert await backend.queues.depth(Q) == Depth(waiting=1, claimed=1)
            self.advance(10)
            assert await backend.queues.states(Q, ["taken"]) == {"taken": WorkState.WAITING}

    @on_loop
    async def test_finished_work_is_forgotten_after_an_hour(self) -> None:
        async with self.make() as backend:
            await backend.queues.add(Q, a_work("a"))
            await backend.queues.finish(Q, await claimed(backend.queues), 1)
            self.advance(3599)
            assert await backend.queues.states(Q, ["a"]) == {"a": WorkState.FINISHED}
            self.advance(1)
            assert await backend.queues.states(Q, ["a"]) == {"a": WorkState.UNKNOWN}

    # --- waiting ------------------------------------------------------------------------------------------------------

    @on_loop
    async def test_a_waiting_claimer_gets_what_is_added(self) -> None:
        async with self.make_live() as backend:
            waiting = asyncio.create_task(backend.queues.claim(Q, "w", 10, 60))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await backend.queues.add(Q, a_work("a"))
            claim = await waiting
            assert claim is not None
            assert claim.work.id == "a"

    @on_loop
    async def test_a_waiting_claimer_gets_what_expires(self) -> None:
        async with self.make_live() as backend:
            await backend.queues.add(Q, a_work("a"))
            await claimed(backend.queues, "dies", 0.1)
            claim = await backend.queues.claim(Q, "waits", 10, 60)
            assert claim is not None
            assert (claim.deliveries, claim.lost_by) == (2, ("dies",))

    @on_loop
    async def test_a_waiting_claimer_gets_what_is_given_back(self) -> None:
        async with self.make_live() as backend:
            await backend.queues.add(Q, a_work("a"))
            held = await claimed(backend.queues, "leaves")
            waiting = asyncio.create_task(backend.queues.claim(Q, "waits", 10, 60))
            await asyncio.sleep(0.05)
            await backend.queues.give_back(Q, held)
            claim = await waiting
            assert claim is not None
            assert claim.lost_by == ()

    @on_loop
    async def test_waiting_in_vain_ends(self) -> None:
        async with self.make_live() as backend:
            vain = [backend.queues.claim(Q, f"w{n}", 10, 0.05) for n in range(5)]
            assert await asyncio.gather(*vain) == [None] * 5

    @on_loop
    async def test_a_claimer_that_is_cancelled_takes_no_work_with_it(self) -> None:
        async with self.make_live() as backend:
            for pause_s in (0.0, 0.001, 0.003, 0.05):
                waiting = asyncio.create_task(backend.queues.claim(Q, "leaves", 60, 60))
                await asyncio.sleep(pause_s)
                await backend.queues.add(Q, a_work("a"))
                waiting.cancel()
                found = (await asyncio.gather(waiting, return_exceptions=True))[0]
                if not isinstance(found, Claim):
                    found = await backend.queues.claim(Q, "stays", 60, 30)
                    assert found is not None
                assert found.deliveries == 1
                assert await backend.queues.finish(Q, found, 1)

    @on_loop
    async def test_many_claimers_get_each_work_once(self) -> None:
        async with self.make_live() as backend:
            done: Counter[str] = Counter()

            async def work(name: str) -> None:
                while claim := await backend.queues.claim(Q, name, 60, 0.3):
                    done[claim.work.id] += 1
                    assert await backend.queues.finish(Q, claim, 1000)

            async def add(number: int) -> None:
                await backend.queues.add(Q, a_work(f"{number}", f"f{number % 7}"))

            workers = [asyncio.create_task(work(f"w{n}")) for n in range(24)]
            await asyncio.gather(*(add(number) for number in range(200)))
            await asyncio.gather(*workers)
            assert done == Counter(f"{number}" for number in range(200))
            assert await backend.queues.depth(Q) == Depth(waiting=0, claimed=0)
