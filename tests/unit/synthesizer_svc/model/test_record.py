"""What was answered is answered from the record; what was lost is asked again, and nothing is paid for twice unseen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from shared import ids
from shared.cache.memory import MemoryLeases
from shared.errors import Unavailable
from shared.events import EndpointRecord, ModelBudget, Usage
from shared.store.memory import MemoryBlobs, MemoryDocuments
from synthesizer_svc.model import Completion, CompletionRequest, ModelError
from synthesizer_svc.model.budgeted import BudgetedModel, Budgets, BudgetSettings
from synthesizer_svc.model.estimate import most
from synthesizer_svc.model.recorded import INTENTS, RecordedModel
from tests.fakes.metered_model import PRICES, MeteredModel, a_question
from tests.sim.loop import run
from tests.sim.processes import LoopClock


class Place:
    """A store and a cache, and replicas over them."""

    def __init__(self) -> None:
        self.documents, self.blobs, self.clock = MemoryDocuments(), MemoryBlobs(), LoopClock()
        self.leases = MemoryLeases(self.clock)

    def replica(self, inner, endpoints=("metered",), leases=None) -> RecordedModel:
        budgets = Budgets(self.documents, self.clock, BudgetSettings())
        return RecordedModel(
            BudgetedModel(inner, budgets, PRICES),
            endpoints,
            documents=self.documents,
            blobs=self.blobs,
            leases=leases or self.leases,
            clock=self.clock,
        )

    async def spent(self) -> int:
        return (await Budgets(self.documents, self.clock, BudgetSettings()).spent("search-1")).tokens

    async def intents(self) -> int:
        return len([key async for key, _ in self.documents.scan(INTENTS)])


def test_an_equal_question_is_answered_from_the_record_at_no_cost():
    place, inner = Place(), MeteredModel()

    async def twice() -> tuple[Completion, Completion]:
        first = await place.replica(inner).complete(a_question())
        return first, await place.replica(inner).complete(a_question(deadline_s=5.0, budget=ModelBudget(tokens=1)))

    first, second = run(1, twice())
    assert first.usage.requests == 1
    assert second == replace(first, usage=Usage())
    assert len(inner.billed) == 1


@pytest.mark.parametrize("change", [{"seed": 2}, {"text": "another"}, {"output_tokens_max": 100}, {"schema": "{}"}])
def test_another_question_is_asked(change):
    place, inner = Place(), MeteredModel()

    async def both() -> None:
        await place.replica(inner).complete(a_question())
        await place.replica(inner).complete(a_question(**change))

    run(1, both())
    assert len(inner.billed) == 2


def test_another_set_of_endpoints_is_asked_again():
    place, inner = Place(), MeteredModel()

    async def both() -> None:
        await place.replica(inner).complete(a_question())
        await place.replica(inner, endpoints=("metered", "better")).complete(a_question())

    run(1, both())
    assert len(inner.billed) == 2


@pytest.mark.parametrize("seed", range(8))
def test_of_replicas_that_ask_the_same_one_asks_and_the_others_wait(seed):
    place, inner = Place(), MeteredModel(seed=seed, longest_s=200.0)

    async def all_at_once() -> list[Completion]:
        return list(await asyncio.gather(*(place.replica(inner).complete(a_question()) for _ in range(4))))

    answers = run(seed, all_at_once())
    assert len(inner.billed) == 1
    assert len({answer.text for answer in answers}) == 1
    assert sorted(answer.usage.requests for answer in answers) == [0, 0, 0, 1]


def test_who_waits_for_the_dead_asks_when_their_lease_runs_out_and_the_lost_call_stays_spent():
    place, inner = Place(), MeteredModel(longest_s=50.0)

    async def killed() -> Completion:
        class Frozen:
            """Leases of a process that is gone: nothing of it gives them back."""

            def __init__(self, inner) -> None:
                self.acquire, self.renew = inner.acquire, self.nothing

            async def nothing(self, *_: object) -> bool:
                return False

            release = nothing

        dying = asyncio.create_task(place.replica(inner, leases=Frozen(place.leases)).complete(a_question()))
        while not inner.billed:
            await asyncio.sleep(0.1)
        waiting = asyncio.create_task(place.replica(inner).complete(a_question()))
        await asyncio.sleep(1)
        dying.cancel()
        await asyncio.wait([dying])
        return await waiting

    answer = run(1, killed())
    lost = most(a_question())
    assert len(inner.billed) == 2
    assert run(1, place.intents()) == 2
    spent = run(1, place.spent())
    assert spent == lost.input_tokens + lost.output_tokens + answer.usage.input_tokens + answer.usage.output_tokens
    assert spent >= inner.tokens


def test_who_has_waited_for_somebody_else_asks_with_what_is_left_of_the_deadline():
    place, asked = Place(), []

    class Seen(MeteredModel):
        async def complete(self, request: CompletionRequest) -> Completion:
            asked.append(request.deadline_s)
            return await super().complete(request)

    async def waited(held_s: float) -> Completion:
        question = a_question(deadline_s=10.0)
        name = ids.derive(question.hash, "metered")
        token = await place.leases.acquire(f"model.question.{name}", "somebody else", 60.0)
        waiting = asyncio.create_task(place.replica(Seen()).complete(question))
        await asyncio.sleep(held_s)
        await place.leases.release(f"model.question.{name}", token)
        return await waiting

    with pytest.raises(ModelError, match="somebody else is asking"):
        run(1, waited(11.0))
    assert asked == []
    assert run(1, waited(6.0)).usage.requests == 1
    assert 1.0 < asked[0] <= 4.0


def test_a_failure_is_no_answer_and_is_asked_again():
    place, inner = Place(), MeteredModel(failing=1.0)

    async def again() -> Completion:
        with pytest.raises(ModelError):
            await place.replica(inner).complete(a_question())
        inner.failing = 0.0
        return await place.replica(inner).complete(a_question())

    assert run(1, again()).usage.requests == 1
    assert len(inner.billed) == 2


def test_without_the_caches_server_questions_are_answered():
    class Away:
        async def acquire(self, *_: object) -> int:
            raise Unavailable("redis is away")

    place, inner = Place(), MeteredModel()
    assert run(1, place.replica(inner, leases=Away()).complete(a_question())).text


def test_what_a_record_holds_survives_any_text():
    class Odd(MeteredModel):
        async def complete(self, request):
            return replace(await super().complete(request), text="half \ud800 a pair", truncated=True)

    place, inner = Place(), Odd()

    async def twice() -> Completion:
        await place.replica(inner).complete(a_question())
        return await place.replica(inner).complete(a_question())

    answer = run(1, twice())
    assert answer.text == "half \ud800 a pair"
    assert answer.truncated


def test_the_budget_and_the_record_of_endpoints_are_no_part_of_a_question():
    told = a_question(budget=ModelBudget(tokens=5), endpoints=(EndpointRecord(endpoint="a"),), search_id="another")
    assert told.hash == a_question().hash


def test_an_answer_that_was_paid_for_is_not_lost_while_the_store_is_away():
    class Flaky(MemoryDocuments):
        """Away for some writes after the call, and once after it had done what was asked."""

        calls = 0

        async def create(self, collection, key, value):
            Flaky.calls += 1
            if Flaky.calls in (5, 6, 8):
                raise Unavailable("the store is away")
            standing = await super().create(collection, key, value)
            if Flaky.calls == 4:
                raise Unavailable("the answer of the store was lost")
            return standing

    place, inner = Place(), MeteredModel()
    place.documents = Flaky()

    async def twice() -> tuple[Completion, Completion]:
        first = await place.replica(inner).complete(a_question())
        return first, await place.replica(inner).complete(a_question())

    first, second = run(1, twice())
    assert (first.usage.requests, second.usage.requests) == (1, 0)
    assert len(inner.billed) == 1
    assert run(1, place.spent()) == inner.tokens


def test_who_stops_waiting_for_money_gives_back_what_was_never_sent():
    place, inner = Place(), MeteredModel(longest_s=50.0)
    one = most(a_question())
    day = BudgetSettings(day_tokens=one.input_tokens + one.output_tokens)

    async def given_up() -> int:
        budgets = Budgets(place.documents, place.clock, day)
        model = BudgetedModel(inner, budgets, PRICES)
        running = asyncio.create_task(model.complete(a_question(search_id="search-2")))
        while not inner.billed:
            await asyncio.sleep(0.1)
        waiting = asyncio.create_task(model.complete(a_question(seed=2)))
        await asyncio.sleep(0.7)
        waiting.cancel()
        await asyncio.wait([waiting, running])
        return await place.spent()

    assert run(1, given_up()) == 0
