"""kill -9 of a cluster's synthesizer while a model answers it: another process goes on, and pays nothing twice."""

from __future__ import annotations

import asyncio
import json
import subprocess

import pytest
from command_line import OPERATOR, ROOT, command, environment

from deploy.local.cluster import Cluster
from deploy.local.layout import Layout
from shared.adapters import open_store
from shared.clock import SystemClock
from synthesizer_svc.model.budgeted import Budgets, BudgetSettings
from synthesizer_svc.model.recorded import ANSWERS
from tests.fakes.kernel_vendor import EACH, SETTINGS, Vendor, open_for_business

pytestmark = [pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(300)]

CHIP = "simulated"
EVALUATIONS = 6
DEADLINE_S = 200.0


@pytest.fixture
def vendor():
    with open_for_business(Vendor(prose_first=True, holds_from=5)) as vendor:
        yield vendor


@pytest.fixture
def cluster(vendor, tmp_path):
    """With one model, which is ``vendor``'s."""
    cluster = Cluster(tmp_path / "cluster")
    try:
        cluster.up(
            Layout(chips=(CHIP,), workers=1, environment=SETTINGS | {"MODEL_URL": vendor.url, "MODEL_NAME": "vendor-1"})
        )
        yield cluster
    finally:
        vendor.release()
        cluster.down()


async def on_record(store_url: str) -> int:
    """Answers of models that are kept."""
    async with open_store(store_url) as store:
        return len([name async for name, _ in store.documents.scan(ANSWERS)])


async def booked(store_url: str, search_id: str) -> int:
    """Tokens that the ledger says may have been spent."""
    async with open_store(store_url) as store:
        return (await Budgets(store.documents, SystemClock(), BudgetSettings()).spent(search_id)).tokens


def test_a_synthesizer_killed_in_the_middle_of_a_call_is_gone_on_for_without_paying_twice(
    cluster, vendor, home, tmp_path
):
    state = cluster.running()
    assert state is not None
    asked = command("submit", OPERATOR, "--chip", CHIP, "--evaluations", EVALUATIONS, "--watch", "--json")
    with subprocess.Popen(
        [*asked, "--server", state.server], cwd=ROOT, env=environment(home), stdout=subprocess.PIPE, text=True
    ) as client:
        vendor.await_held(DEADLINE_S)
        killed = cluster.kill("synthesizer")
        billed, kept = vendor.tokens, asyncio.run(on_record(state.store_url))
        vendor.release()
        out, _ = client.communicate(timeout=DEADLINE_S)
    result = json.loads(out.splitlines()[-1])

    (row,) = [each for each in cluster.status() if each.name == "synthesizer"]
    assert row.restarts >= 1
    assert row.pid != killed
    assert result["evaluations"] == EVALUATIONS
    lost = billed // EACH - kept
    assert lost >= 1
    assert sum(times - 1 for times in vendor.asked.values()) == lost
    assert max(vendor.asked.values()) == 2
    spent = result["model"]["input_tokens"] + result["model"]["output_tokens"]
    assert vendor.tokens - billed <= spent < vendor.tokens - lost * EACH  # the dead one's answers are in the ledger
    assert asyncio.run(booked(state.store_url, result["search_id"])) >= vendor.tokens
