"""A verdict as a trace has the fields of flashinfer-bench's schema, and keeps its validator's rules."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from shared.events import (
    NOT_THE_KERNELS_FAULT,
    PPM,
    Entry,
    Evaluation,
    Roofline,
    Speedup,
    Status,
    Timing,
    Trust,
)
from shared.submissions import aggregate, trace
from tests.unit.submissions.samples import WORKLOAD

EVALUATION_FIELDS = {"status", "environment", "timestamp", "log", "correctness", "performance"}
"""Of ``flashinfer_bench.data.Evaluation`` 0.1.2, as are the names below."""
STATUSES = {
    "PASSED",
    "INCORRECT_SHAPE",
    "INCORRECT_NUMERICAL",
    "INCORRECT_DTYPE",
    "RUNTIME_ERROR",
    "COMPILE_ERROR",
    "TIMEOUT",
}

PASSED = Evaluation(
    status=Status.PASSED,
    trust=Trust.L3,
    evidence=(Entry(name="max_error", value="2.384e-07"), Entry(name="rmse", value="1e-8")),
    timings=(Timing(name="candidate", median_ns=500_000), Timing(name="eager", median_ns=1_500_000)),
    speedups=(Speedup(baseline="eager", ratio_ppm=3_010_000, low_ppm=2_900_000, high_ppm=3_100_000),),
    environment=(Entry(name="torch", value="2.6"),),
    ledger_hash="ab" * 32,
)


def record(evaluation: Evaluation) -> dict[str, Any]:
    return trace.record(
        evaluation,
        definition="rmsnorm_h64",
        solution="plain",
        workload=WORKLOAD,
        hardware="A processor",
        timestamp="2026-12-01T12:00:00+00:00",
    )


def test_a_passed_kernel_has_correctness_and_performance_in_their_units():
    made = record(PASSED)
    assert set(made) == {"definition", "workload", "solution", "evaluation"}
    assert set(made["evaluation"]) == EVALUATION_FIELDS
    assert made["workload"] == WORKLOAD
    assert made["evaluation"]["environment"] == {"hardware": "A processor", "libs": {"torch": "2.6"}}
    assert made["evaluation"]["performance"] == {
        "latency_ms": 0.5,
        "reference_latency_ms": 1.5,
        "speedup_factor": 3.01,
    }
    correctness = made["evaluation"]["correctness"]
    assert correctness["max_absolute_error"] == 2.384e-07
    assert math.isnan(float(correctness["max_relative_error"]))  # not measured, and not said to be zero
    assert correctness["extra"]["ledger"] == "ab" * 32


@pytest.mark.parametrize("status", sorted(set(Status) - set(NOT_THE_KERNELS_FAULT) - {Status.PASSED}))
def test_every_verdict_on_a_kernel_has_a_word_there_and_the_blocks_its_validator_wants(status):
    made = record(Evaluation(status=status, evidence=(Entry(name="reason", value="because"),)))["evaluation"]
    assert made["status"] in STATUSES
    assert (made["correctness"] is not None) == (made["status"] == "INCORRECT_NUMERICAL")
    assert made["performance"] is None
    assert f"verdict: {status.value}" in made["log"]
    assert "reason: because" in made["log"]


@pytest.mark.parametrize("status", NOT_THE_KERNELS_FAULT)
def test_what_says_nothing_about_the_kernel_is_no_trace(status):
    with pytest.raises(trace.NoTrace):
        record(Evaluation(status=status))


def test_a_kernel_that_passed_without_being_timed_is_no_trace():
    with pytest.raises(trace.NoTrace, match="nothing was timed"):
        record(replace(PASSED, timings=(), speedups=()))


@pytest.mark.parametrize(
    ("value", "theirs"), [("nan", "NaN"), ("-1", "NaN"), ("many", "NaN"), ("-inf", "NaN"), ("inf", "Infinity")]
)
def test_an_error_that_is_no_finite_number_is_the_string_that_their_schema_has_for_it(value, theirs):
    broken = Evaluation(status=Status.WRONG_RESULT, evidence=(Entry(name="max_error", value=value),))
    made = record(broken)
    assert made["evaluation"]["correctness"]["max_absolute_error"] == theirs
    assert json.loads(trace.line(made), parse_constant=pytest.fail) == made


def test_a_trace_is_one_line_of_strict_json():
    evidence = (Entry(name="printed", value="two\nlines \u2028"),)
    written = trace.line(record(replace(PASSED, evidence=evidence)))
    assert written.count(b"\n") == 1
    assert json.loads(written)["solution"] == "plain"


def timed(ratio: float, **changes: Any) -> Evaluation:
    speedup = Speedup(baseline="eager", ratio_ppm=int(ratio * PPM), low_ppm=1, high_ppm=1)
    return replace(PASSED, speedups=(speedup,), **changes)


def test_several_workloads_have_the_geometric_mean_of_their_speedups():
    found = aggregate.geometric_mean({"a": timed(2.0), "b": timed(8.0)})
    assert found.speedup == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        (Evaluation(status=Status.WRONG_RESULT), "workload b is WRONG_RESULT"),
        (Evaluation(status=Status.NOISY), "workload b is NOISY"),
        (replace(PASSED, speedups=(), timings=()), "workload b was not timed"),
        (timed(9.0, roofline=Roofline(floor_ns=500_001)), "workload b took less than its floor of 500.0 µs"),
    ],
)
def test_one_workload_that_failed_or_is_under_its_floor_leaves_no_mean(spoiled, reason):
    found = aggregate.geometric_mean({"a": timed(100.0), "b": spoiled})
    assert (found.speedup, found.reason) == (None, reason)
