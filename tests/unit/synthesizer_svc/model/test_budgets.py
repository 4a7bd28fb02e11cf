"""Budgets stop before they are exceeded, whatever calls cost, however many run and whoever dies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from shared.clock import SECOND_NS, ManualClock
from shared.events import ModelBudget, Usage
from shared.store.memory import MemoryDocuments
from shared.usage import UNKNOWN
from synthesizer_svc.model import Completion, ModelError
from synthesizer_svc.model.budgeted import BudgetedModel, Budgets, BudgetSettings
from synthesizer_svc.model.day_book import DayBook
from synthesizer_svc.model.estimate import most
from synthesizer_svc.model.prices import Prices, dearest_micro
from synthesizer_svc.settings import budget as settings_of
from tests.fakes.metered_model import PRICES, MeteredModel, a_question
from tests.sim.loop import run
from tests.sim.processes import LoopClock

CALLS, PARALLEL = 500, 8
DAY_S = 24 * 3600


def budgeted(inner, documents=None, settings=None, prices=PRICES) -> BudgetedModel:
    return BudgetedModel(
        inner, Budgets(documents or MemoryDocuments(), LoopClock(), settings or BudgetSettings()), prices
    )


async def ask_all(models, budget: ModelBudget, calls: int = CALLS) -> list[ModelError]:
    """``calls`` questions, ``PARALLEL`` at a time, shared out over ``models``; the refusals."""
    refused: list[ModelError] = []
    waiting = iter(range(calls))

    async def expansion(model) -> None:
        for number in waiting:
            try:
                await model.complete(a_question(f"question {number}", seed=number, budget=budget))
            except ModelError as error:
                if error.code == "budget":
                    refused.append(error)

    async with asyncio.TaskGroup() as group:
        for n in range(PARALLEL):
            group.create_task(expansion(models[n % len(models)]))
    return refused


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("failing", [0.0, 0.2])
def test_500_calls_in_8_parallel_expansions_never_exceed_a_budget_of_tokens(seed, failing):
    inner, limit = MeteredModel(seed=seed, failing=failing), 30_000
    refused = run(seed, ask_all([budgeted(inner)], ModelBudget(tokens=limit)))
    largest = most(a_question("question 499")).input_tokens + 200
    assert inner.tokens <= limit
    assert inner.tokens > limit - 2 * largest, "the budget was not used"
    assert inner.most_running > 1
    assert refused
    assert all(error.pauses for error in refused)
    assert len(inner.billed) + len(refused) == CALLS


@pytest.mark.parametrize("seed", range(4))
def test_500_calls_in_8_parallel_expansions_never_exceed_a_budget_of_money(seed):
    inner, limit = MeteredModel(seed=seed), 250_000
    refused = run(seed, ask_all([budgeted(inner)], ModelBudget(cost_micro=limit)))
    dearest = dearest_micro(most(a_question("question 499")), PRICES)
    assert limit - 2 * dearest < inner.cost_micro <= limit
    assert refused


@pytest.mark.parametrize("seed", range(4))
def test_replicas_that_share_a_store_share_a_budget(seed):
    inner, limit, documents = MeteredModel(seed=seed), 30_000, MemoryDocuments()
    replicas = [budgeted(inner, documents) for _ in range(3)]
    refused = run(seed, ask_all(replicas, ModelBudget(tokens=limit)))
    assert limit - 2_000 < inner.tokens <= limit
    assert refused


def test_a_day_bounds_all_searches_together_and_the_next_day_begins_anew():
    inner = MeteredModel()
    model = budgeted(inner, settings=BudgetSettings(day_tokens=2_000))

    async def two_days() -> tuple[int, ModelError]:
        error = None
        for number in range(40):
            try:
                await model.complete(a_question(seed=number, search_id=f"search-{number}"))
            except ModelError as refused:
                error = refused
        spent = inner.tokens
        await asyncio.sleep(DAY_S)
        await model.complete(a_question(seed=99, search_id="tomorrow"))
        return spent, error

    spent, error = run(1, two_days())
    assert 1_000 < spent <= 2_000
    assert error is not None
    assert "MODEL_BUDGET_DAY" in error.detail
    assert inner.tokens > spent


def test_a_search_without_a_limit_of_its_own_has_the_deployments():
    inner = MeteredModel()
    model = budgeted(inner, settings=BudgetSettings(tokens=3_000))
    run(1, ask_all([model], ModelBudget(), calls=40))
    assert inner.tokens <= 3_000


def test_a_raised_limit_counts_from_the_beginning_of_the_search():
    inner = MeteredModel()
    model = budgeted(inner)

    async def raise_it() -> tuple[int, int]:
        await ask_all([model], ModelBudget(tokens=3_000), calls=40)
        before = inner.tokens
        await ask_all([model], ModelBudget(tokens=6_000), calls=40)
        return before, inner.tokens

    before, after = run(1, raise_it())
    assert before <= 3_000 < after <= 6_000


def test_a_budget_of_money_refuses_what_has_no_price_and_says_what_to_do():
    inner = MeteredModel()
    model = budgeted(inner, prices=Prices())
    with pytest.raises(ModelError, match="no known price") as caught:
        run(1, model.complete(a_question(budget=ModelBudget(cost_micro=10**9))))
    assert caught.value.code == "budget"
    assert caught.value.pauses
    assert "configure prices, or limit tokens" in caught.value.detail
    assert not inner.billed


def test_a_budget_of_tokens_needs_no_price():
    inner = MeteredModel(prices=Prices())
    model = budgeted(inner, prices=Prices())
    run(1, model.complete(a_question(budget=ModelBudget(tokens=10_000))))
    assert inner.billed[0].cost_micro == UNKNOWN


def test_what_was_spent_at_an_unknown_price_cannot_be_within_a_budget_of_money():
    documents, unknown = MemoryDocuments(), MeteredModel(prices=Prices())

    async def later_with_a_price() -> None:
        await budgeted(unknown, documents, prices=Prices()).complete(a_question())
        await budgeted(MeteredModel(), documents).complete(a_question(seed=2, budget=ModelBudget(cost_micro=10**9)))

    with pytest.raises(ModelError, match="some calls before had no known price"):
        run(1, later_with_a_price())


def test_a_call_that_was_killed_stays_spent_at_its_most():
    documents, inner = MemoryDocuments(), MeteredModel(longest_s=50)
    question = a_question(budget=ModelBudget(tokens=10_000))

    async def killed() -> int:
        model = budgeted(inner, documents)
        calling = asyncio.create_task(model.complete(question))
        while not inner.billed:
            await asyncio.sleep(0.1)
        calling.cancel()
        await asyncio.wait([calling])
        after = Budgets(documents, LoopClock(), BudgetSettings())
        return (await after.spent("search-1")).tokens

    estimate = most(question)
    assert run(1, killed()) == estimate.input_tokens + estimate.output_tokens


def test_money_that_running_calls_may_give_back_is_waited_for():
    """Eight calls whose most is far beyond the budget together, and which cost almost nothing."""

    class Cheap(MeteredModel):
        async def complete(self, request):
            completion = await super().complete(request)
            self.billed[-1] = replace(self.billed[-1], input_tokens=1, output_tokens=1)
            return replace(completion, usage=self.billed[-1])

    inner = Cheap()
    one = most(a_question("question 7"))
    limit = 2 * (one.input_tokens + one.output_tokens)
    assert run(1, ask_all([budgeted(inner)], ModelBudget(tokens=limit), calls=8)) == []
    assert len(inner.billed) == 8


def test_who_waits_for_a_dead_processs_money_is_told_that_it_is_gone():
    documents, inner = MemoryDocuments(), MeteredModel(longest_s=50)
    one = most(a_question())
    budget = ModelBudget(tokens=one.input_tokens + one.output_tokens)

    async def another() -> ModelError:
        calling = asyncio.create_task(budgeted(inner, documents).complete(a_question(budget=budget, deadline_s=60.0)))
        while not inner.billed:
            await asyncio.sleep(0.1)
        calling.cancel()
        await asyncio.wait([calling])
        began_ns = LoopClock().monotonic_ns()
        with pytest.raises(ModelError) as caught:
            await budgeted(inner, documents).complete(a_question(seed=2, budget=budget, deadline_s=600.0))
        assert LoopClock().monotonic_ns() - began_ns < 100 * SECOND_NS
        return caught.value

    error = run(1, another())
    assert error.pauses
    assert "the search's budget" in error.detail


def test_waiting_for_both_budgets_takes_no_longer_than_the_deadline():
    one = most(a_question())
    tokens = one.input_tokens + one.output_tokens

    class Slow(MeteredModel):
        async def complete(self, request):
            await asyncio.sleep({"search-1": 40, "search-2": 300}[request.search_id])
            return Completion(text="done", usage=Usage(output_tokens=5, requests=1))

    async def third() -> tuple[float, ModelError]:
        budgets = Budgets(MemoryDocuments(), LoopClock(), BudgetSettings(day_tokens=2 * tokens))
        model, own = BudgetedModel(Slow(), budgets, PRICES), ModelBudget(tokens=tokens * 3 // 2)
        running = [
            asyncio.create_task(model.complete(a_question(search_id=name, budget=own)))
            for name in ("search-1", "search-2")
        ]
        await asyncio.sleep(1)
        began_ns = LoopClock().monotonic_ns()
        with pytest.raises(ModelError) as caught:
            await model.complete(a_question(budget=own, deadline_s=60.0))
        took_s = (LoopClock().monotonic_ns() - began_ns) / SECOND_NS
        await asyncio.gather(*running)
        return took_s, caught.value

    took_s, error = run(1, third())
    assert error.code == "budget"
    assert 59 < took_s < 65  # 40 of them for the search's, and not another 60 for the day's


def test_searches_with_stores_of_their_own_share_a_day(tmp_path):
    settings = BudgetSettings(day_tokens=2_000)
    first, second = MeteredModel(seed=1), MeteredModel(seed=2)

    async def two_runs() -> None:
        for inner in (first, second):
            days = DayBook(f"sqlite:{tmp_path / 'budgets.db'}")
            budgets = Budgets(MemoryDocuments(), ManualClock(SECOND_NS), settings, days=days)
            inner.longest_s = 0.0
            try:
                for number in range(20):
                    with suppress(ModelError):
                        await BudgetedModel(inner, budgets, PRICES).complete(a_question(seed=number))
            finally:
                await days.close()

    asyncio.run(two_runs())
    assert 1_000 < first.tokens + second.tokens <= 2_000
    assert not second.billed or first.tokens < 2_000


def test_a_day_book_is_in_the_users_data_unless_a_server_keeps_searches(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert settings_of({}).days_url == f"sqlite:{tmp_path / 'kernelevolve' / 'budgets.db'}"
    assert settings_of({"STORE_URL": "mongodb://db/kernelevolve"}).days_url == ""
    assert settings_of({"MODEL_BUDGET_DAYS_URL": "sqlite:here.db"}).days_url == "sqlite:here.db"
