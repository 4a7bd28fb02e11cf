"""Money over the whole path, by the vendor's own meter: 500 calls of 8 conversations at once, through all that stands
before an endpoint and over HTTP, to a vendor that fails in every way and says little of what it bills.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from shared.adapters import open_store
from shared.clock import SECOND_NS, SystemClock
from shared.events import ModelBudget, Usage
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from shared.usage import total
from synthesizer_svc.model import CompletionRequest, Message, Model, ModelError, Role
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.budgeted import BudgetSettings
from synthesizer_svc.model.capabilities import Capabilities, Protocol, Reasoning
from synthesizer_svc.model.ledger import Account, Ledger
from synthesizer_svc.model.opening import open_model
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.retrying import RetrySettings
from tests.aio import on_loop
from tests.fakes.billing_vendor import TIMES, BillingVendor, Sale, as_an_object, kept_back, well
from tests.fakes.fault_server import fault_server
from tests.integration.model.asking import settings_for

CALLS, PARALLEL, TURNS = 500, 8, 3
DAY = "2026-12-02"
NOON_NS = 1_796_212_800 * SECOND_NS
PRICES = Prices(input=3_000_000, output=15_000_000, cached=300_000, cache_write=3_750_000)
RETRY = RetrySettings(attempts_max=3, pause_s=0.001, pause_max_s=0.002)
PATIENT = BreakerSettings(failures_max=1_000_000)
TOKENS, COST_MICRO = 80_000, 500_000
"""Of a budget that is spent before all calls are made."""


class Noon(SystemClock):
    """A day of which nobody sees the end."""

    def __init__(self) -> None:
        self._ahead_ns = NOON_NS - self.now_ns()

    def now_ns(self) -> int:
        return super().now_ns() + getattr(self, "_ahead_ns", 0)


@dataclass(kw_only=True)
class Asked:
    """What became of the calls, as those who asked were told."""

    usages: dict[str, list[Usage]] = field(default_factory=dict)
    """Of a search."""
    refused: list[ModelError] = field(default_factory=list)
    """By a budget."""

    def used(self, *searches: str) -> Usage:
        return total(*itertools.chain(*(self.usages[search] for search in searches or self.usages)))


async def converse(model: Model, searches: Sequence[str], budget: ModelBudget, calls: int = CALLS) -> Asked:
    """``calls`` questions in ``PARALLEL`` conversations at a time, of ``TURNS`` where they are answered."""
    asked, numbers = Asked(usages={search: [] for search in searches}), iter(range(calls))

    async def conversation(search: str) -> None:
        messages: list[Message] = []
        for number in numbers:
            text = f"{search}: question {number}, größer 好" if not messages else "Again, please."
            messages.append(Message(role=Role.USER, text=text))
            question = CompletionRequest(
                system="You write kernels.", messages=tuple(messages), seed=number, output_tokens_max=200,
                deadline_s=60.0, search_id=search, budget=budget,
            )  # fmt: skip
            try:
                answer = await model.complete(question)
            except ModelError as error:
                asked.usages[search].append(error.usage)
                if error.code == "budget":
                    asked.refused.append(error)
                messages = []
            else:
                asked.usages[search].append(answer.usage)
                messages.append(Message(role=Role.ASSISTANT, text=answer.text))
            if len(messages) >= 2 * TURNS:
                messages = []

    async with asyncio.TaskGroup() as group:
        for _, search in zip(range(PARALLEL), itertools.cycle(searches), strict=False):
            group.create_task(conversation(search))
    return asked


@asynccontextmanager
async def stack(
    vendor: BillingVendor, budget: BudgetSettings, silence_s: float = 20.0
) -> AsyncIterator[tuple[Model, Ports]]:
    """What the service builds, with two endpoints of ``vendor``: one in each protocol."""
    ports_ = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
    async with fault_server(vendor) as server, open_ports(ports_, Noon()) as ports:
        both = [
            settings_for(server, prices=PRICES, silence_s=silence_s, capabilities=capabilities)
            for capabilities in (Capabilities(), Capabilities(protocol=Protocol.ANTHROPIC, reasoning=Reasoning.NONE))
        ]
        endpoints = [replace(each, name=each.capabilities.protocol.value) for each in both]
        opened = open_model("", endpoints, ports=ports, retry=RETRY, breaker=PATIENT, budget=budget)
        assert opened.model is not None
        assert opened.close is not None
        try:
            yield opened.model, ports
        finally:
            await opened.close()


async def account(documents, name: str) -> Account:
    ledger = Ledger(documents)
    found = ledger.account(name)
    await ledger.catch_up(found)
    return found


def tokens(sales: Sequence[Sale]) -> int:
    return sum(sale.tokens(sale.billed) for sale in sales)


def cost_micro(sales: Sequence[Sale]) -> int:
    return sum(sale.cost_micro(sale.billed) for sale in sales)


def check_books(kept: Account, sales: Sequence[Sale], used: Usage) -> None:
    """An account holds what those who asked were told, at least what was billed, and beyond that only what a vendor
    said itself, or the most of a question where it said nothing.
    """
    assert not kept.open, "money that nobody gets back"
    assert (kept.spent.tokens, kept.spent.cost_micro) == (used.input_tokens + used.output_tokens, used.cost_micro)
    assert used.requests == len(sales)
    assert tokens(sales) <= kept.spent.tokens <= sum(sale.tokens(sale.told or sale.most) for sale in sales)
    assert cost_micro(sales) <= kept.spent.cost_micro <= sum(sale.cost_micro(sale.told or sale.most) for sale in sales)


def largest(sales: Sequence[Sale], limit: ModelBudget) -> int:
    """The most that a call could cost, in what ``limit`` limits."""
    return max(sale.tokens(sale.most) if limit.tokens else sale.cost_micro(sale.most) for sale in sales)


def check_limit(kept: Account, sales: Sequence[Sale], limit: ModelBudget) -> None:
    """The limit holds by the vendor's meter, and no more of it is left than one call's most."""
    spent, billed, most = (
        (kept.spent.tokens, tokens(sales), limit.tokens)
        if limit.tokens
        else (kept.spent.cost_micro, cost_micro(sales), limit.cost_micro)
    )
    assert billed <= most
    assert most - largest(sales, limit) < spent <= most


LIMITS = {"tokens": ModelBudget(tokens=TOKENS), "money": ModelBudget(cost_micro=COST_MICRO)}


@pytest.mark.parametrize("limit", LIMITS)
@on_loop
async def test_500_calls_in_8_conversations_over_http_never_exceed_the_budgets_of_their_searches(limit):
    vendor, searches = BillingVendor(prices=PRICES, together=PARALLEL), ("search-1", "search-2")
    own = LIMITS[limit]
    own = ModelBudget(tokens=own.tokens // 2, cost_micro=own.cost_micro // 2)
    async with stack(vendor, BudgetSettings()) as (model, ports):
        asked = await converse(model, searches, own)
        for search in searches:
            kept = await account(ports.store.documents, f"search/{search}")
            check_books(kept, vendor.of(search), asked.used(search))
            check_limit(kept, vendor.of(search), own)
        check_books(await account(ports.store.documents, f"day/{DAY}"), vendor.sales, asked.used())
    check_calls(vendor, asked)


@pytest.mark.parametrize("limit", LIMITS)
@on_loop
async def test_500_calls_in_8_conversations_over_http_never_exceed_the_budget_of_a_day(limit, tmp_path):
    vendor = BillingVendor(prices=PRICES, seed=2, together=PARALLEL)
    searches = [f"search-{n}" for n in range(PARALLEL)]
    day, days_url = LIMITS[limit], f"sqlite:{tmp_path / 'budgets.db'}"
    budget = BudgetSettings(day_tokens=day.tokens, day_cost=day.cost_micro / 1e6, days_url=days_url)
    async with stack(vendor, budget) as (model, ports):
        asked = await converse(model, searches, ModelBudget())
        for search in searches:
            check_books(await account(ports.store.documents, f"search/{search}"), vendor.of(search), asked.used(search))
    async with open_store(days_url) as store:
        kept = await account(store.documents, f"day/{DAY}")
    check_books(kept, vendor.sales, asked.used())
    check_limit(kept, vendor.sales, day)
    check_calls(vendor, asked)


@pytest.mark.parametrize("of_the_most", [None, 1.0])
@pytest.mark.parametrize("manner", [*TIMES, kept_back], ids=lambda manner: manner.__name__)
@on_loop
async def test_however_a_vendor_answers_it_bills_no_more_than_is_in_the_books(manner, of_the_most):
    """Alone, so that what one tells too much makes up for nothing that another keeps to itself."""
    vendor = BillingVendor(prices=PRICES, times={manner: 1}, of_the_most=of_the_most)
    async with stack(vendor, BudgetSettings(), silence_s=0.3 if manner is kept_back else 20.0) as (model, ports):
        asked = await converse(model, ["search-1"], ModelBudget(), calls=8 if manner is kept_back else 16)
        check_books(await account(ports.store.documents, "search/search-1"), vendor.sales, asked.used())
    assert {sale.manner for sale in vendor.sales} == {manner.__name__}


@on_loop
async def test_a_vendor_that_bills_more_than_a_call_may_take_exceeds_a_budget_by_that_of_the_calls_on_their_way(caplog):
    vendor = BillingVendor(prices=PRICES, times={well: 1, as_an_object: 1}, of_the_most=1.5, together=PARALLEL)
    async with stack(vendor, BudgetSettings()) as (model, ports):
        asked = await converse(model, ["search-1"], ModelBudget(tokens=TOKENS))
        kept = await account(ports.store.documents, "search/search-1")
    more = sorted(sale.tokens(sale.billed) - sale.tokens(sale.most) for sale in vendor.sales)
    assert TOKENS < tokens(vendor.sales) <= TOKENS + sum(more[-PARALLEL:])
    assert kept.spent.tokens == tokens(vendor.sales), "what it tells is in the books, however much it is"
    assert asked.refused
    assert "model endpoint anthropic counts" in caplog.text
    assert "at most: budgets may be exceeded" in caplog.text


@on_loop
async def test_a_vendor_that_tells_less_than_it_bills_exceeds_a_budget_by_what_it_conceals():
    vendor = BillingVendor(prices=PRICES, times={well: 1, as_an_object: 1}, conceals=0.5)
    async with stack(vendor, BudgetSettings()) as (model, ports):
        await converse(model, ["search-1"], ModelBudget(tokens=TOKENS // 2))
        kept = await account(ports.store.documents, "search/search-1")
    concealed = sum(sale.tokens(sale.billed) - sale.tokens(sale.told) for sale in vendor.sales)
    assert tokens(vendor.sales) - concealed == kept.spent.tokens <= TOKENS // 2 < tokens(vendor.sales)


def check_calls(vendor: BillingVendor, asked: Asked) -> None:
    """It was what it claims to be."""
    assert sum(map(len, asked.usages.values())) == CALLS
    assert vendor.most_running == PARALLEL
    assert len(vendor.sales) > 100
    assert len({sale.manner for sale in vendor.sales}) > 15
    assert asked.refused
    assert all(error.pauses for error in asked.refused if not error.usage.requests)
