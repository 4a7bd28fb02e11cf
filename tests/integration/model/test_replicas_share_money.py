"""Replicas in processes of their own over one store and one Valkey share answers and money; one may be killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.adapters import open_store
from shared.clock import SystemClock
from synthesizer_svc.model.budgeted import Budgets, BudgetSettings
from synthesizer_svc.model.estimate import most
from tests import servers
from tests.fakes.metered_endpoint import Vendor, metered_endpoint
from tests.integration.model.asker import PARALLEL, question

ROOT = Path(__file__).resolve().parents[3]
PLENTY = 10_000_000
QUESTIONS = 40
DEADLINE_S = 280
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def cache_url():
    server = servers.fresh_redis()
    yield servers.servers.cache_url(server.port)
    server.close()


def replica(
    store: Path, cache_url: str, vendor: Vendor, tokens: int, questions: int = QUESTIONS
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.integration.model.asker", f"sqlite:{store}", cache_url, vendor.url]
    return subprocess.Popen(
        [*command, str(tokens), str(questions)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=servers.die_with_parent,  # noqa: PLW1509 - one system call; a test that is ended leaves none behind
    )


def outcomes(process: subprocess.Popen[str]) -> dict[int, tuple[str, str]]:
    """What became of each question, and the requests that it took or its error."""
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    told = (line.split() for line in out.splitlines())
    return {int(number): (how, what) for how, number, what in told}


def wait_for(vendor: Vendor, questions: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while vendor.questions < questions:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_replicas_ask_each_question_once(tmp_path, cache_url):
    with metered_endpoint(Vendor()) as vendor:
        both = [replica(tmp_path / "store.db", cache_url, vendor, PLENTY) for _ in range(2)]
        first, second = (outcomes(process) for process in both)
    assert all(len(asked) == 1 for asked in vendor.billed.values())
    assert len(vendor.billed) == QUESTIONS
    for number in range(QUESTIONS):
        assert sorted((first[number], second[number])) == [("answered", "0"), ("answered", "1")]


def test_two_replicas_never_exceed_the_budget_that_they_share(tmp_path, cache_url):
    largest = most(question(QUESTIONS - 1, 0))
    budget = 5 * (largest.input_tokens + largest.output_tokens)
    with metered_endpoint(Vendor()) as vendor:
        both = [replica(tmp_path / "store.db", cache_url, vendor, budget) for _ in range(2)]
        told = [outcomes(process) for process in both]
    assert budget - 2 * (largest.input_tokens + largest.output_tokens) < vendor.tokens <= budget
    assert {what for each in told for how, what in each.values() if how == "failed"} == {"budget"}


def test_a_replica_killed_in_the_middle_loses_no_answer_and_pays_for_no_more_than_was_on_its_way(tmp_path, cache_url):
    store = tmp_path / "store.db"
    with metered_endpoint(Vendor()) as vendor:
        doomed = replica(store, cache_url, vendor, PLENTY)
        survivor = replica(store, cache_url, vendor, PLENTY)
        wait_for(vendor, QUESTIONS // 2)
        doomed.kill()
        doomed.communicate()
        told = outcomes(survivor)
    assert [how for how, _ in told.values()] == ["answered"] * QUESTIONS
    again = [len(asked) - 1 for asked in vendor.billed.values()]
    assert sum(again) <= PARALLEL
    assert max(again, default=0) <= 1


def test_what_a_killed_replica_may_have_spent_stays_spent(tmp_path, cache_url):
    """Killed again and again, with everything on its way: the vendor's bill stays within the budget all the same."""
    store = tmp_path / "store.db"
    largest = most(question(QUESTIONS - 1, 0))
    budget = 14 * (largest.input_tokens + largest.output_tokens)
    with metered_endpoint(Vendor(longest_s=1.0)) as vendor:
        for _ in range(2):
            before = vendor.questions
            doomed = replica(store, cache_url, vendor, budget)
            wait_for(vendor, before + 3)
            doomed.kill()
            doomed.communicate()
        told = outcomes(replica(store, cache_url, vendor, budget, PARALLEL))
    spent = asyncio.run(ledger(store))
    assert vendor.tokens < spent <= budget, "what was lost is not in the books"
    assert told


async def ledger(store: Path) -> int:
    async with open_store(f"sqlite:{store}") as opened:
        spent = await Budgets(opened.documents, SystemClock(), BudgetSettings()).spent("search-1")
    return spent.tokens
