"""Equal cost in the comparison of synthesizers: money where it has a price, otherwise seconds; the page says which."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import click
import pytest

from shared.events import Entry
from tests.bench import synth, synth_search
from tests.bench.synth_endpoints import Configured, answering, configured, playing
from tests.bench.synth_plan import Cell, Equal, Plan, Way
from tests.bench.synth_report import Outcome, Source, page
from tests.bench.synth_tape import Tape
from tests.builders import a_search
from tests.unit.search_svc.trees import grown

PLAN = Plan(operators=("softmax",), seeds=(1,), evaluations=8, seconds=0.0)
HOSTED = {"MODEL_URL": "https://host/v1", "MODEL_NAME": "m"}
PRICES = {"MODEL_PRICES_INPUT": "3000000", "MODEL_PRICES_OUTPUT": "15000000", "MODEL_PRICES_CURRENCY": "EUR"}
FREE = {"MODEL_PRICES_INPUT": "0", "MODEL_PRICES_OUTPUT": "0"}
OWN_MONEY = "the search's budget of 1.000000: 0.900000 are spent, and the next call may need 0.200000"


def at_cost(way: Way, **more) -> Outcome:
    cell = Cell(equal=Equal.COST, operator="softmax", seed=1, way=way)
    return Outcome(cell=cell, gain=1.2, improved=True, evaluations=12, seconds=30.0, **more)


def text(plan: Plan, *outcomes: Outcome, unpriced: str = "") -> str:
    source = Source(live=True, endpoint="somewhere", unpriced=unpriced)
    return page(outcomes, plan, source, command="x", machine="m", date="2026-12-02")


def test_endpoints_with_prices_are_compared_at_equal_money():
    plan = synth.costing(PLAN, configured(HOSTED | PRICES), None, None)
    assert (plan.money, plan.currency, plan.seconds) == (synth.MONEY, "EUR", synth.SECONDS_WITH_MONEY)
    plan = synth.costing(PLAN, configured(HOSTED | PRICES), 2.5, 900.0)
    assert (plan.money, plan.seconds) == (2.5, 900.0)
    assert Plan.from_plain(json.loads(json.dumps(plan.to_plain()))) == plan


@pytest.mark.parametrize(("prices", "why"), [({}, "no price is known"), (FREE, "takes no money")])
def test_endpoints_without_prices_are_compared_at_equal_seconds_and_cannot_be_given_money(prices, why):
    endpoints = configured(HOSTED | prices)
    plan = synth.costing(PLAN, endpoints, None, None)
    assert (plan.money, plan.currency, plan.seconds) == (0.0, "", synth.SECONDS)
    assert why in endpoints.unpriced
    with pytest.raises(click.UsageError, match=why):
        synth.costing(PLAN, endpoints, 1.0, None)


def test_one_endpoint_without_a_price_makes_the_cost_of_all_unknown():
    priced, other = {"prices": {"input": 1, "output": 1}}, {"prices": {"input": 1}}
    assert not Configured(tables={"a": priced}, told="", settings={}).unpriced
    assert Configured(tables={"a": priced, "b": other}, told="", settings={}).unpriced


def test_time_may_be_the_cost_although_there_are_prices():
    assert synth.costing(PLAN, configured(HOSTED | PRICES), 0.0, None).money == 0.0


def test_a_recording_knows_whether_its_answers_had_a_price(tmp_path):
    with answering(PLAN, configured(HOSTED | FREE), record=tmp_path / "r.jsonl", date="2026-12-02") as who:
        header = who.tape.header
    with playing(Tape(header=json.loads(json.dumps(header)))) as who:
        assert "takes no money" in who.source.unpriced
        assert not who.source.live


# --- how searches are limited -----------------------------------------------------------------------------------------


def called_with(cell: Cell, plan: Plan, monkeypatch, tmp_path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of the search of ``cell``."""
    seen = []

    def call(command, environment, *_):
        seen.append((command, environment))
        return subprocess.CompletedProcess(command, 70, stdout="", stderr="")

    monkeypatch.setattr(synth_search, "called", call)
    with pytest.raises(synth_search.SearchFailedError):
        synth_search.run(cell, plan, tmp_path, {"MODEL_ENDPOINTS": "x.toml"}, within_s=1.0)
    return seen[0]


WITH_MONEY = replace(PLAN, money=0.25, currency="EUR", seconds=300.0)


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("equal", Equal)
def test_only_searches_at_equal_cost_that_ask_a_model_have_the_money_and_end_with_it(equal, way, monkeypatch, tmp_path):
    cell = Cell(equal=equal, operator="softmax", seed=1, way=way)
    arguments, environment = called_with(cell, WITH_MONEY, monkeypatch, tmp_path)
    limited = equal is Equal.COST and way.asks
    assert ("--model-budget" in arguments) == limited
    assert (environment.get("MODEL_BUDGET_WHEN_SPENT") == "end") == limited
    assert ("--seconds" in arguments) == (equal is Equal.COST)
    if limited:
        assert arguments[arguments.index("--model-budget") + 1] == "0.25"
        assert arguments[arguments.index("--seconds") + 1] == "300.0"
    arguments, _ = called_with(cell, replace(WITH_MONEY, money=0.0), monkeypatch, tmp_path)
    assert "--model-budget" not in arguments


def test_a_search_that_its_own_money_ended_did_not_end_early_and_one_that_a_days_ended_did():
    def ended(reason, detail):
        return synth_search.ended_early({"reason": reason, "detail": detail})

    assert ended("synthesis_budget", OWN_MONEY) == ended("wall_clock", None) == ""
    assert ended("synthesis_budget", "the budget of 2026-12-02 of 5.000000: spent").startswith("synthesis_budget the")
    assert ended("space_exhausted", "") == "space_exhausted"


def test_money_is_spent_where_it_ended_the_search_and_where_schedules_stood_in():
    tree = grown(a_search(), {"a": ("", 1.5)})
    assert not synth_search.out_of_money(tree)
    assert synth_search.out_of_money(replace(tree, limit="synthesis_budget", synthesis_failure=("budget", OWN_MONEY)))
    node = tree.nodes["a"]

    def stood_in(why: str):
        move = replace(node.move, parameters=(Entry(name="instead_of", value=why),))
        return replace(tree, nodes={"a": replace(node, move=move)})

    assert synth_search.out_of_money(stood_in(f"budget: {OWN_MONEY}"))
    assert not synth_search.out_of_money(stood_in("endpoint: nobody answers"))


# --- what the page says -----------------------------------------------------------------------------------------------


def test_the_page_says_that_cost_is_money_and_what_schedules_are_compared_at():
    found = text(
        WITH_MONEY,
        at_cost(Way.SCHEDULES),
        at_cost(Way.WHOLE, cost=0.2, money_spent=True),
        at_cost(Way.HYBRID, cost=0.1),
    )
    assert "## At equal cost: 0.25 EUR per search, within 300 s" in found
    assert "**Cost is money here.**" in found
    assert "Schedules cost no money: they are compared at equal time" in found
    assert "| 0.2000 of 0.2500 |" in found
    assert "| 0.0000 |" in found  # of schedules, which have no money to spend
    assert "**Not limited by money**: hybrid 1 of 1." in found


def test_the_page_says_that_cost_is_time_and_why():
    plan = replace(PLAN, seconds=45.0)
    found = text(plan, at_cost(Way.WHOLE, cost=None), unpriced="no price is known of this endpoint")
    assert "## At equal cost: 45 s per search" in found
    assert "**Cost is time here**, because no price is known of this endpoint." in found
    assert "| unknown |" in found
    assert "Not limited by money" not in found
    assert "because no limit of money was asked for" in text(plan, at_cost(Way.WHOLE))


def test_what_the_comparison_can_cost_is_told_before_it_begins():
    assert synth.bill(WITH_MONEY).startswith("at equal cost: at most 0.75 EUR in 3 searches")
