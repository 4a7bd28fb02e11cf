"""kill -9 while a model is being asked: what was answered is not paid again, and what was on its way at most once."""

from __future__ import annotations

import asyncio
import signal
import subprocess

import pytest
from command_line import OPERATOR, ROOT, command, environment, kernelevolve, last_object

from cli import conversations, history
from shared.adapters import open_store
from shared.clock import SystemClock
from shared.events import Usage
from shared.usage import total
from synthesizer_svc.model.budgeted import Budgets, BudgetSettings
from synthesizer_svc.model.recorded import ANSWERS
from tests.fakes.kernel_vendor import EACH, SETTINGS, Vendor, open_for_business

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

EVALUATIONS = 6
DEADLINE_S = 120.0


def told(run) -> Usage:
    """What the facts of a run say that models cost."""
    past = asyncio.run(history.open_past(run))
    return total(*(fact.usage for fact in conversations.facts(past.entries)))


async def kept(run) -> int:
    """Answers on record."""
    async with open_store(f"sqlite:{run / 'search.db'}") as store:
        return len([name async for name, _ in store.documents.scan(ANSWERS)])


async def booked(run, search_id: str) -> int:
    """Tokens that the ledger says may have been spent."""
    async with open_store(f"sqlite:{run / 'search.db'}") as store:
        return (await Budgets(store.documents, SystemClock(), BudgetSettings()).spent(search_id)).tokens


def tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def test_a_search_killed_in_the_middle_of_a_conversation_pays_no_answer_twice(home, tmp_path):
    run, vendor = tmp_path / "run", Vendor(prose_first=True, holds_from=5)
    asked = command("optimize", OPERATOR, "--chip", "simulated", "--evaluations", EVALUATIONS, "--out", run)
    with open_for_business(vendor):
        settings = SETTINGS | {"MODEL_URL": vendor.url, "MODEL_NAME": "vendor-1"}
        with subprocess.Popen(asked, cwd=ROOT, env=environment(home) | settings, stderr=subprocess.DEVNULL) as process:
            vendor.await_held(DEADLINE_S)
            process.send_signal(signal.SIGKILL)
        before, on_record, billed_before = told(run), asyncio.run(kept(run)), vendor.tokens
        vendor.release()
        done = kernelevolve("resume", run, "--json", home=home, settings=settings)
    result = last_object(done)

    assert result["evaluations"] == EVALUATIONS, done.stderr
    lost = billed_before // EACH - on_record
    assert lost >= 1
    assert sum(times - 1 for times in vendor.asked.values()) == lost
    assert max(vendor.asked.values()) == 2
    # First turns were on record before any fact told of them: the dead process paid for them.
    assert on_record > tokens(before) // EACH
    model = result["model"]
    assert model["input_tokens"] + model["output_tokens"] == tokens(before) + vendor.tokens - billed_before
    assert tokens(told(run)) == model["input_tokens"] + model["output_tokens"]
    assert asyncio.run(booked(run, result["search_id"])) >= vendor.tokens
    assert last_object(kernelevolve("replay", run, "--json", home=home))["identical"]
