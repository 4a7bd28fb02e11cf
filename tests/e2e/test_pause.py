"""A search by a model whose budget is spent pauses, says how to go on, and goes on; nothing needs the model later."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.command_line import OPERATOR, kernelevolve, last_object

pytestmark = pytest.mark.timeout(600)

ANSWER = """Variant {n}.

```cpp
#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {{ return {n}; }}
```
"""
PAUSED = 75
EVALUATIONS = 6


def a_model(tmp_path) -> dict[str, str]:
    """Settings of a model that answers from a file and bills 1,000 tokens for each answer."""
    script = tmp_path / "script.json"
    answers = [{"text": ANSWER.format(n=n), "input_tokens": 900, "output_tokens": 100} for n in range(20)]
    script.write_text(json.dumps({"answers": answers}))
    return {
        "MODEL_URL": f"scripted:{script}",
        "MODEL_ASKING": "whole",
        "MODEL_SHARE_PERCENT": "100",
        "MODEL_OUTPUT_TOKENS_MAX": "1000",
        "MODEL_PROMPT_TOKENS_MAX": "12000",
        "SIMULATED_MEDIAN_S": "0.01",
        "SIMULATED_LONGEST_S": "0.05",
    }


def needed(text: str) -> int:
    """Tokens that the call may need which was refused."""
    found = re.search(r"the next call may need ([\d,]+)", text)
    assert found, text
    return int(found[1].replace(",", ""))


def test_a_search_pauses_at_its_budget_and_is_resumed_with_a_larger_one(tmp_path):
    run, model = tmp_path / "run", a_model(tmp_path)
    asked = ("optimize", OPERATOR, "--chip", "simulated", "--evaluations", EVALUATIONS, "--out", run)

    none = kernelevolve(*asked, "--model-tokens", 1, home=tmp_path, settings=model)
    assert none.returncode == PAUSED, none.stderr
    assert re.search(
        r"^outcome +paused \(budget\): the search's budget of 1 tokens: 0 are spent", none.stdout, re.MULTILINE
    )
    assert f"go on     kernelevolve resume {run} --model-budget AMOUNT" in none.stdout

    one = kernelevolve(
        "resume", run, "--model-tokens", needed(none.stdout) + 2500, "--json", home=tmp_path, settings=model
    )
    paused = last_object(one)
    assert (one.returncode, paused["outcome"], paused["reason"]) == (PAUSED, "paused", "budget")
    assert 0 < paused["evaluations"] < EVALUATIONS
    tokens = paused["model"]["input_tokens"] + paused["model"]["output_tokens"]
    assert tokens == 1000 * paused["evaluations"]

    free = kernelevolve("resume", run, "--model-tokens", 10**9, "--json", home=tmp_path, settings=model)
    ended = last_object(free)
    assert (free.returncode, ended["reason"], ended["evaluations"]) == (0, "evaluations", EVALUATIONS)
    # The script begins again with each process, so that its first answers come twice.
    assert ended["model"]["input_tokens"] >= 900 * EVALUATIONS

    replayed = last_object(kernelevolve("replay", run / "search.kelog", "--json", home=tmp_path))
    assert replayed["identical"]
    shown = kernelevolve("explain", run / "search.kelog", home=tmp_path)
    name = re.findall(r"([0-9a-f]{8}) rewrite", shown.stdout)[0]
    told = kernelevolve("explain", run / "search.kelog", name, "--prompt", home=tmp_path)
    assert "== system" in told.stdout
    assert "Variant" in told.stdout
    assert "900 tokens read" in told.stdout

    answers = tmp_path / "answers.jsonl"
    exported = kernelevolve("export", run / "search.kelog", "--sft", answers, home=tmp_path)
    assert exported.returncode == 0, exported.stderr
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(rows) == ended["statuses"].get("PASSED", 0)
    assert all(row["messages"][-1]["content"].startswith("Variant") for row in rows)


def test_a_budget_of_money_does_not_begin_without_a_price(tmp_path):
    run = tmp_path / "run"
    asked = ("optimize", OPERATOR, "--chip", "simulated", "--evaluations", EVALUATIONS, "--out", run, "--json")
    refused = kernelevolve(*asked, "--model-budget", 5, home=tmp_path, settings=a_model(tmp_path))
    told = last_object(refused)
    assert (refused.returncode, told["outcome"], told["evaluations"]) == (PAUSED, "paused", 0)
    assert "no known price" in told["detail"]
    assert "limit tokens instead" in told["detail"]


def test_a_search_with_schedules_goes_on_without_the_model_and_says_so(tmp_path):
    asked = (
        "optimize",
        OPERATOR,
        "--chip",
        "simulated",
        "--evaluations",
        EVALUATIONS,
        "--out",
        tmp_path / "run",
        "--json",
    )
    settings = a_model(tmp_path) | {"MODEL_SHARE_PERCENT": "50"}
    done = kernelevolve(*asked, "--model-tokens", 1, home=tmp_path, settings=settings)
    told = last_object(done)
    assert (done.returncode, told["evaluations"]) == (0, EVALUATIONS)
    assert told["model"]["stood_in"] > 0
    assert told["model"]["because"].startswith("budget: the search's budget of 1 tokens")
