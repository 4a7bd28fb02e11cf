"""What one finished search has to offer the search for another chip, and what became of such offers (pure)."""

from __future__ import annotations

from typing import Any

from cli import estimates
from cli.progress import ratio
from search_svc import projection, scoring
from search_svc.tree import Node, Tree
from shared.events import NOT_THE_KERNELS_FAULT, PPM, CandidateProduced, CandidateRejected, Evaluation, Prior, Status
from synthesizer_svc.schedule.transfer import origin

Fact = CandidateProduced | CandidateRejected
SIMULATED = "simulated"
"""What a result is noted with that the simulated chip made up."""
WHY_CHARS = 100


def best_schedule(tree: Tree) -> Prior | None:
    """The schedule of the winner, or else of the best kernel that passed, and still did when it was tried again; None
    when none of them has a schedule.
    """
    winner = projection.winner(tree)
    passed = sorted(tree.passed(), key=lambda node: (-_ppm(tree, node), node.candidate_id))
    right = (node for node in (winner, *passed) if node is not None and not _refuted(node))
    best = next((node for node in right if node.kernel.schedule_hash), None)
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
    """A kernel that passed, by the last evaluation in which it did: ``1.84x over compiled (measured)``."""
    evaluation, ppm = _last(node), _ppm(tree, node)
    if not ppm:
        return "right, not compared with anything"
    if tree.reference is not None:
        return estimates.against(ppm, tree.reference.basis.value)
    speedup = evaluation.speedup(tree.search.baseline)
    noted = {entry.name for entry in (*evaluation.evidence, *evaluation.environment)}
    label = SIMULATED if SIMULATED in noted else "measured"
    return f"{ratio(ppm)} over {speedup.baseline if speedup else tree.search.baseline} ({label})"


def _last(node: Node) -> Evaluation:
    """The latest evaluation that it passed; noise that kept it from being measured again says nothing about it."""
    found = [each for each in (node.final, node.evaluation) if each is not None and each.status is Status.PASSED]
    return found[0]


def _ppm(tree: Tree, node: Node) -> int:
    return scoring.score_ppm(_last(node), tree.search.baseline, tree.reference)


def _refuted(node: Node) -> bool:
    """It failed when it was tried again."""
    again = node.final.status if node.final else Status.PASSED
    return again is not Status.PASSED and again not in NOT_THE_KERNELS_FAULT


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
        why = "".join(node.evaluation.why.splitlines()[:1])[:WHY_CHARS] if node.evaluation else ""
        ppm = _ppm(tree, node) if node.passed else 0
        stands = {"ratio": ppm / PPM if ppm else None, "detail": standing(tree, node) if node.passed else why}
        return told | {"candidate_id": node.candidate_id, "status": node.label} | stands
    answers = (fact for fact in facts if (fact.expansion_id, fact.index) == (expansion_id, index))
    rejected = next((answer for answer in answers if isinstance(answer, CandidateRejected)), None)
    status, detail = (rejected.code, rejected.detail) if rejected else ("untried", "")
    return told | {"candidate_id": None, "status": status, "ratio": None, "detail": detail}


def _asked(tree: Tree, prior: Prior) -> tuple[str, int]:
    """The expansion that asked for ``prior`` and its index there."""
    for expansion_id, expansion in tree.expansions.items():
        if prior in expansion.request.priors:
            return expansion_id, expansion.request.priors.index(prior)
    return "", 0


def _is_from(node: Node, prior: Prior) -> bool:
    return any(entry.name == "candidate" and entry.value == prior.candidate_id for entry in node.move.parameters)
