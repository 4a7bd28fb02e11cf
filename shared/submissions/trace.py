"""A verdict as a record of flashinfer-bench's: one JSON object, one line of a traces file (pure).

Format: https://bench.flashinfer.ai/docs/flashinfer-trace/trace. Its validator wants correctness and performance with
PASSED, correctness alone with INCORRECT_NUMERICAL, and neither with any other status. Errors that are no finite number
are strings there, ``"NaN"`` and ``"Infinity"`` (pydantic's ``ser_json_inf_nan="strings"``), so that a line stays strict
JSON; ``"NaN"`` is also what one that was not measured is here. What has no word there (``CHEAT``, ``MUTATED_INPUT`` …)
is RUNTIME_ERROR, and ``log`` says it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from shared.events import NOT_THE_KERNELS_FAULT, PPM, Evaluation, Status

NS_PER_MS = 1_000_000
CANDIDATE, REFERENCE = "candidate", "eager"
NOT_MEASURED, INFINITE = "NaN", "Infinity"
WORDS: dict[Status, str] = {
    Status.PASSED: "PASSED",
    Status.COMPILE_ERROR: "COMPILE_ERROR",
    Status.LAUNCH_FAILED: "RUNTIME_ERROR",
    Status.RUNTIME_ERROR: "RUNTIME_ERROR",
    Status.TIMEOUT: "TIMEOUT",
    Status.OUT_OF_MEMORY: "RUNTIME_ERROR",
    Status.WRONG_RESULT: "INCORRECT_NUMERICAL",
    Status.WRONG_SHAPE: "INCORRECT_SHAPE",
    Status.WRONG_DTYPE: "INCORRECT_DTYPE",
    Status.NONDETERMINISTIC: "INCORRECT_NUMERICAL",
    Status.MUTATED_INPUT: "RUNTIME_ERROR",
    Status.PRECISION_DOWNGRADE: "INCORRECT_NUMERICAL",
    Status.NO_CUSTOM_KERNEL: "RUNTIME_ERROR",
    Status.CHEAT: "RUNTIME_ERROR",
}
"""Their word for each status that says something about the kernel."""


class NoTrace(Exception):
    """There is nothing that a trace could say; the message is why."""


def record(
    evaluation: Evaluation,
    *,
    definition: str,
    solution: str,
    workload: Mapping[str, Any],
    hardware: str,
    timestamp: str,
) -> dict[str, Any]:
    """The trace of ``evaluation``. ``workload`` is theirs as it was read; ``timestamp`` is ISO 8601.

    Latencies are medians over blocks, in ms; ``reference_latency_ms`` is the reference run eagerly, and
    ``speedup_factor`` the paired estimate that the verdict rests on, so not exactly their quotient.

    Raises:
        NoTrace: the evaluation says nothing about the kernel, or it passed and nothing was timed.
    """
    if evaluation.status in NOT_THE_KERNELS_FAULT:
        raise NoTrace(f"{evaluation.status.value} says nothing about the kernel")
    word = WORDS[evaluation.status]
    found = {entry.name: entry.value for entry in evaluation.evidence}
    return {
        "definition": definition,
        "workload": _workload(workload),
        "solution": solution,
        "evaluation": {
            "status": word,
            "environment": {
                "hardware": hardware,
                "libs": {entry.name: entry.value for entry in evaluation.environment},
            },
            "timestamp": timestamp,
            "log": "\n".join(_log(evaluation)),
            "correctness": _correctness(evaluation, found) if word in ("PASSED", "INCORRECT_NUMERICAL") else None,
            "performance": _performance(evaluation) if word == "PASSED" else None,
        },
    }


def line(record_: Mapping[str, Any]) -> bytes:
    """``record_`` as one line of a traces file."""
    return (json.dumps(record_, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _workload(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that their schema has; ``inputs`` left out mean random ones, and are required in a trace."""
    return {"axes": {}, "inputs": {}, **raw}


def _correctness(evaluation: Evaluation, found: Mapping[str, str]) -> dict[str, Any]:
    kept = ("rmse", "rmse_limit", "max_error", "max_error_limit", "cases")
    extra: dict[str, Any] = {name: found[name] for name in kept if name in found}
    extra |= {"judge": "kernelevolve", "status": evaluation.status.value, "trust": evaluation.trust.value}
    if evaluation.ledger_hash:
        extra["ledger"] = evaluation.ledger_hash
    return {
        "max_relative_error": _number(found.get("max_relative_error")),
        "max_absolute_error": _number(found.get("max_error")),
        "extra": extra,
    }


def _number(text: str | None) -> float | str:
    try:
        value = float(text or NOT_MEASURED)
    except ValueError:
        return NOT_MEASURED
    if value == math.inf:
        return INFINITE
    return value if value >= 0 else NOT_MEASURED


def _performance(evaluation: Evaluation) -> dict[str, float]:
    times = {timing.name: timing.median_ns / NS_PER_MS for timing in evaluation.timings}
    speedup = evaluation.speedup(REFERENCE)
    if CANDIDATE not in times or REFERENCE not in times or speedup is None:
        raise NoTrace("it passed, and nothing was timed")
    return {
        "latency_ms": times[CANDIDATE],
        "reference_latency_ms": times[REFERENCE],
        "speedup_factor": speedup.ratio_ppm / PPM,
    }


def _log(evaluation: Evaluation) -> list[str]:
    lines = [f"verdict: {evaluation.status.value}, trust {evaluation.trust.value}"]
    lines += [f"{entry.name}: {entry.value}" for entry in evaluation.evidence]
    for speedup in evaluation.speedups:
        low, high = speedup.low_ppm / PPM, speedup.high_ppm / PPM
        lines.append(f"speedup over {speedup.baseline}: {speedup.ratio_ppm / PPM:.3f} [{low:.3f}, {high:.3f}]")
    if evaluation.sandbox:
        lines.append(f"sandbox: {evaluation.sandbox}")
    return lines
