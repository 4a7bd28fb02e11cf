"""Tokens and prices are counted where they are known."""

from __future__ import annotations

import urllib.request
from dataclasses import replace

from shared import metrics
from shared.events import CandidateProduced, CandidateRejected, Context, ExpansionFailed, Memory, Move, Usage
from synthesizer_svc import exported
from tests.builders import a_kernel

PRODUCED = CandidateProduced(
    search_id="s",
    expansion_id="e",
    candidate_id="c",
    index=0,
    kernel=a_kernel("k"),
    move=Move(name="tile"),
    context=Context(memory=Memory.CLEAN),
)
REJECTED = CandidateRejected(search_id="s", expansion_id="e", candidate_id="d", index=1, code="duplicate")


def test_answers_are_counted_by_outcome_and_what_they_cost() -> None:
    paid = Usage(input_tokens=900, output_tokens=80, cached_tokens=500, cost_micro=1234, latency_ns=2_000_000_000)
    with metrics.serving("127.0.0.1:0") as address:
        exported.answered(replace(PRODUCED, usage=paid))
        exported.answered(replace(REJECTED, usage=replace(paid, cost_micro=-1)))
        exported.answered(ExpansionFailed(search_id="s", expansion_id="e", code="endpoint"))
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    for outcome in ("produced", "duplicate", "endpoint"):
        assert f'kernelevolve_candidates_total{{outcome="{outcome}"}} 1.0' in text
    assert 'kernelevolve_model_tokens_total{kind="input"} 1800.0' in text
    assert 'kernelevolve_model_tokens_total{kind="output"} 160.0' in text
    assert 'kernelevolve_model_tokens_total{kind="cached"} 1000.0' in text
    assert "kernelevolve_model_cost_micro_total 1234.0" in text
    assert "kernelevolve_candidate_writing_seconds_sum 4.0" in text
