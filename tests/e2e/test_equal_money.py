"""The comparison of synthesizers with a priced endpoint: a scripted vendor over HTTP, which bills what it answers."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys

import pytest
from command_line import ROOT, environment

from tests.fakes.metered_endpoint import Vendor, metered_endpoint

pytestmark = pytest.mark.timeout(600)
MONEY = 0.12
READ, WROTE = 3_000, 100
PRICES = {"MODEL_PRICES_INPUT": "3000000", "MODEL_PRICES_OUTPUT": "15000000"}
EACH = (READ * 3 + WROTE * 15) / 1_000_000
"""What an answer costs."""
KERNEL = """Variant.

```cpp
#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {{ return {n}; }}
```
"""


class Writes(Vendor):
    """Another kernel for each question."""

    def __init__(self) -> None:
        super().__init__()
        self._number = itertools.count()

    def serve(self, body):
        super().serve(body)
        answer = {"role": "assistant", "content": KERNEL.format(n=next(self._number))}
        told = {
            "id": "c",
            "object": "chat.completion",
            "model": "metered-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": answer}],
            "usage": {"prompt_tokens": READ, "completion_tokens": WROTE, "total_tokens": READ + WROTE},
        }
        return json.dumps(told).encode(), 0.0


def compare(*arguments, home, **settings):
    """The page of a comparison; its searches are for the simulated chip, which measures nothing and takes no time."""
    command = [sys.executable, "-m", "tests.bench.synth", "--no-write", *map(str, arguments)]
    quick = {"SIMULATED_MEDIAN_S": "0.01", "SIMULATED_LONGEST_S": "0.05", "MODEL_OUTPUT_TOKENS_MAX": "500"}
    env = environment(home) | quick | settings
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def spent(page: str) -> float:
    return float(re.search(r"\| ([\d.]+) of 0\.1200 \|$", page, re.MULTILINE)[1])


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return tmp_path_factory.mktemp("equal money") / "answers.jsonl"


@pytest.fixture(scope="module")
def live(recording):
    """The page, and how often the vendor was asked."""
    short = ("--chip", "simulated", "--operators", "row_softmax", "--seeds", 1, "--ways", "whole", "--evaluations", 0)
    with metered_endpoint(Writes()) as vendor:
        named = {"MODEL_URL": vendor.url, "MODEL_NAME": "metered-1", "MODEL_API_KEY": "planted-secret"}
        limits = ("--money", MONEY, "--seconds", 300)
        page = compare(*short, *limits, "--record", recording, home=recording.parent, **named, **PRICES)
        return page, vendor.questions


def test_a_priced_endpoint_is_compared_at_equal_money_by_naming_it_and_its_prices(live, recording):
    page, questions = live
    assert "## At equal cost: 0.12 USD per search, within 300 s" in page
    assert spent(page) == pytest.approx(questions * EACH, abs=1e-4)
    assert 3 * EACH <= spent(page) <= MONEY
    assert "Not limited by money" not in page  # its money ended the search, and it ended with what it had
    assert "ended before a limit" not in page
    assert re.search(r"^\| whole \| 1 \| 1 \|", page, re.MULTILINE)
    assert "planted-secret" not in page + recording.read_text()


@pytest.mark.slow
def test_its_recording_is_compared_at_the_same_money_without_it(live, recording, tmp_path):
    again = compare("--recorded", recording, home=tmp_path)
    assert "## At equal cost: 0.12 USD per search" in again
    assert "recorded from metered-1" in again
    assert 3 * EACH <= spent(again) <= MONEY
