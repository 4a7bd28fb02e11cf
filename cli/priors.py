"""What one finished search has to offer the search for another chip, and what became of such offers (pure)."""

from __future__ import annotations

from typing import Any

from cli import estimates
from cli.progress import ratio
from search_svc import projection
from search_svc.tree import Node, Tree
from shared.events import PPM, CandidateProduced, CandidateRejected, Prior
from synthesizer_svc.schedule.transfer import origin

Fact = CandidateProduced | CandidateRejected


def best_schedule(tree: Tree) -> Prior | None:
    """The schedule of the winner, or else of the best kernel that passed and has one; None when none has."""
    winner = projection.winner(tree)
    passed = sorted(tree.passed(), key=lambda node: (-projection.final_ppm(tree, node), node.candidate_id))
    best = next((node for node in (winner, *passed) if node is not None and node.kernel.schedule_hash), None)
    if best is None:
        return None
    return Prior(
        search_id=tree.search.search_id,
        candidate_id=best.candidate_id,
        chip=tree.search.chip,
        language=best.kernel.language,
        kernel_id=best.kernel.kernel_id,
        schedule_hash=best.kernel.schedule_hash,
        found=standing(tree, best),
    )


def standing(tree: Tree, node: Node) -> str:
    """A kernel that passed, by its last evaluation: ``1.84x over compiled (measured)``."""
    evaluation = node.final or node.evaluation
    ppm = projection.final_ppm(tree, node)
    if evaluation is None or not ppm:
        return "right, not compared with anything"
    if tree.reference is not None:
        return estimates.against(ppm, tree.reference.basis.value)
    speedup = evaluation.speedup(tree.search.baseline)
    return f"{ratio(ppm)} over {speedup.baseline if speedup else tree.search.baseline} (measured)"


def seeds(tree: Tree, facts: tuple[Fact, ...]) -> list[dict[str, Any]]:
    """What became of each prior of a search: a JSON object each. ``ratio`` is null unless it passed; ``detail`` says in
    words how it stands, or why there is no kernel. ``facts`` are the synthesizer's answers.
    """
    return [_seed(tree, prior, facts) for prior in tree.search.priors]


def _seed(tree: Tree, prior: Prior, facts: tuple[Fact, ...]) -> dict[str, Any]:
    told: dict[str, Any] = {"chip": prior.chip, "kernel_id": prior.kernel_id, "origin": origin(prior)}
    expansion_id, index = _asked(tree, prior)
    node = next((n for n in tree.nodes.values() if n.expansion_id == expansion_id and _is_from(n, prior)), None)
    if node is not None:
        detail = standing(tree, node) if node.passed else node.evaluation.why if node.evaluation else ""
        ppm = projection.final_ppm(tree, node)
        passed = {"ratio": ppm / PPM if ppm else None, "detail": detail}
        return told | {"candidate_id": node.candidate_id, "status": node.label} | passed
    answers = (fact for fact in facts if (fact.expansion_id, fact.index) == (expansion_id, index))
    why = next((answer for answer in answers if isinstance(answer, CandidateRejected)), None)
    status, detail = (why.code, why.detail) if why else ("untried", "")
    return told | {"candidate_id": None, "status": status, "ratio": None, "detail": detail}


def _asked(tree: Tree, prior: Prior) -> tuple[str, int]:
    """The expansion that asked for ``prior`` and its index there."""
    for expansion_id, expansion in tree.expansions.items():
        if prior in expansion.request.priors:
            return expansion_id, expansion.request.priors.index(prior)
    return "", 0


def _is_from(node: Node, prior: Prior) -> bool:
    return any(entry.name == "candidate" and entry.value == prior.candidate_id for entry in node.move.parameters)
