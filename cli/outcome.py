"""The final object of a search, as ``--json`` prints it and ``result.json`` keeps it (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli import estimates, spending
from cli.phases import PAUSED
from search_svc import projection
from search_svc.tree import Node, Tree
from shared import exit_codes
from shared.events import PPM, Evaluation
from shared.usage import by_a_model

NS_PER_S = 1_000_000_000
NS_PER_US = 1_000
EXIT_CODES = {
    "improved": exit_codes.DONE,
    "estimated": exit_codes.DONE,
    "no_improvement": exit_codes.DONE,
    "cancelled": exit_codes.FAILED,
    "failed": exit_codes.FAILED,
    PAUSED: exit_codes.PAUSED,
}
"""No kernel beating the baseline is a valid, well-reported result; only a search that could not be done fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a search ends with: the final object and where its pieces are."""

    tree: Tree
    result: dict[str, Any]
    artefact: Path | None


def final_object(tree: Tree, *, run_dir: Path | None, artefact: Path | None, total_ns: int) -> dict[str, Any]:
    """Outcome, winner and where the time went. The outcome of a search that waits to be resumed is ``paused``.
    ``best`` is null unless a winner was announced; ``run_dir`` is null when nothing was written here.

    ``seconds.framework`` is what this project's own code took: the evaluator's time outside building, checking, timing
    and profiling, and the synthesizer's time without a model.
    """
    summary = projection.summarize(tree)
    winner = projection.winner(tree)
    stages = projection.stage_totals(tree)
    synthesis_ns = sum(node.usage.latency_ns for node in tree.nodes.values() if not by_a_model(node.usage))
    return {
        "search_id": summary.search_id,
        "operator": tree.search.operator.name,
        "chip": tree.search.chip,
        "outcome": PAUSED if summary.phase == PAUSED else summary.outcome,
        "reason": summary.reason,
        "detail": summary.detail,
        "best": best_object(tree, winner, artefact) if winner else None,
        "evaluations": tree.charged,
        "statuses": dict(summary.statuses),
        "model": spending.model_object(summary),
        "seconds": {
            "total": seconds(total_ns),
            "build": seconds(stages.build_ns),
            "correctness": seconds(stages.correctness_ns),
            "timing": seconds(stages.timing_ns),
            "profile": seconds(stages.profile_ns),
            "framework": seconds(stages.framework_ns + synthesis_ns),
        },
        "environment": environment(winner),
        "run_dir": str(run_dir) if run_dir else None,
    }


def best_object(tree: Tree, winner: Node, artefact: Path | None) -> dict[str, Any]:
    """The winner with its re-measured numbers. ``estimate`` is null unless it could not be timed; all speedups are
    null then.
    """
    evaluation = winner.final
    assert evaluation is not None, "a winner was re-measured"
    interval = evaluation.speedup(tree.search.baseline)
    return {
        "candidate_id": winner.candidate_id,
        "kernel_id": winner.kernel.kernel_id,
        "language": winner.kernel.language,
        "trust": evaluation.trust.value,
        "speedup": {
            "eager": speedup(evaluation, "eager"),
            "compiled": speedup(evaluation, "compiled"),
            "ci_low": interval.low_ppm / PPM if interval else None,
            "ci_high": interval.high_ppm / PPM if interval else None,
        },
        "estimate": estimates.plain(evaluation.estimate, tree.reference),
        "median_us": {timing.name: timing.median_ns / NS_PER_US for timing in evaluation.timings},
        "sol_fraction": evaluation.roofline.fraction_ppm / PPM if evaluation.roofline.floor_ns else None,
        "bound": evaluation.diagnosis.bound.value,
        "diagnosis": evaluation.diagnosis.summary,
        "artefact": str(artefact) if artefact else None,
    }


def speedup(evaluation: Evaluation, baseline: str) -> float | None:
    """Measured speedup over ``baseline``; None when that baseline was not measured."""
    measured = evaluation.speedup(baseline)
    return measured.ratio_ppm / PPM if measured else None


def environment(winner: Node | None) -> dict[str, str]:
    """Versions and machine of the deciding measurement."""
    if winner is None or winner.final is None:
        return {}
    return {entry.name: entry.value for entry in winner.final.environment}


def seconds(ns: int) -> float:
    return round(ns / NS_PER_S, 3)
