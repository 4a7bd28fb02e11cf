"""An endpoint that dies, or whose budget is spent, pauses a search; it goes on from there, and replays as one."""

from __future__ import annotations

import re

import pytest
from command_line import OPERATOR, kernelevolve, last_object

from tests.fakes.kernel_vendor import EACH, SETTINGS, Vendor, open_for_business

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]

PAUSED = 75
EVALUATIONS = 6
ANSWERED_BEFORE = 3
MICRO_PER_TOKEN = 3
ENDPOINTS = """
[endpoints.vendor]
url = "{url}"
model = "vendor-1"
prices = {{ input = 3_000_000, output = 3_000_000, cache_write = 3_000_000, currency = "EUR" }}
"""


@pytest.fixture
def vendor():
    """At an address of its own, where nobody answers yet."""
    vendor = Vendor()
    with open_for_business(vendor):
        pass
    return vendor


@pytest.fixture
def do(vendor, tmp_path):
    """Runs a command with the vendor as its only writer."""
    models = tmp_path / "models.toml"
    models.write_text(ENDPOINTS.format(url=vendor.url))
    settings = SETTINGS | {"MODEL_ENDPOINTS": str(models)}
    return lambda *arguments: kernelevolve(*arguments, home=tmp_path, settings=settings)


@pytest.fixture
def asked(tmp_path):
    return ("optimize", OPERATOR, "--chip", "simulated", "--evaluations", EVALUATIONS, "--out", tmp_path / "run")


def ended_as_one(do, vendor, run, ended, *, cut=0):
    """A search that was paused ended improved, and replays without the vendor. Its total is the vendor's bill, and the
    question of each connection that was ``cut``, for which the vendor may have billed.
    """
    told = last_object(ended)
    assert (ended.returncode, told["outcome"], told["evaluations"]) == (0, "improved", EVALUATIONS), ended.stderr
    model = told["model"]
    tokens = model["input_tokens"] + model["output_tokens"]
    assert round(1e6 * model["cost"]) == MICRO_PER_TOKEN * tokens
    assert (tokens > vendor.tokens) == model["estimated"] == bool(cut)
    assert tokens >= vendor.tokens
    assert set(vendor.asked.values()) == {1}
    assert last_object(do("replay", run, "--json"))["identical"]


def test_a_search_whose_endpoint_dies_pauses_with_the_reason_and_ends_when_it_is_back(do, vendor, asked, tmp_path):
    run = tmp_path / "run"
    vendor.goes_after = ANSWERED_BEFORE
    with open_for_business(vendor):
        died = do(*asked)
    assert died.returncode == PAUSED, died.stdout + died.stderr
    assert re.search(r"^outcome +paused \(endpoint\): vendor: .*onnect", died.stdout, re.MULTILINE), died.stdout
    assert f"go on     kernelevolve resume {run}" in died.stdout
    assert vendor.tokens == ANSWERED_BEFORE * EACH

    vendor.goes_after = -1
    with open_for_business(vendor):
        ended = do("resume", run, "--json")
    ended_as_one(do, vendor, run, ended, cut=vendor.cut)


def test_a_search_whose_money_is_spent_pauses_with_the_reason_and_ends_with_more(do, vendor, asked, tmp_path):
    run = tmp_path / "run"
    with open_for_business(vendor):
        poor = do(*asked, "--model-budget", 0.01)
        assert poor.returncode == PAUSED, poor.stdout + poor.stderr
        assert re.search(r"^outcome +paused \(budget\): .*budget of 0.01", poor.stdout, re.MULTILINE), poor.stdout
        (needed,) = re.findall(r"the next call may need ([\d.]+)", poor.stdout)

        some = do("resume", run, "--model-budget", float(needed) + 3 * EACH * MICRO_PER_TOKEN / 1e6, "--json")
        told = last_object(some)
        assert (told["outcome"], told["reason"]) == ("paused", "budget"), some.stderr
        assert 0 < told["evaluations"] < EVALUATIONS
        assert told["model"]["cost"] <= float(needed) + 3 * EACH * MICRO_PER_TOKEN / 1e6

        ended = do("resume", run, "--model-budget", 10, "--json")
    ended_as_one(do, vendor, run, ended)
