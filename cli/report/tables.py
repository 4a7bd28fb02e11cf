"""The report's tables as rows of text (pure). What was not measured is a dash, or says what it rests on instead."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli import estimates, spending
from search_svc import projection
from search_svc.tree import Node, Tree
from shared.events import PPM, Entry, Evaluation, ModelBudget, Speedup
from shared.usage import cost_text

TOP_SHOWN = 10
NONE = "–"
NS_PER_US = 1_000

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """One generation on the way to the winner."""

    candidate_id: str
    move: str
    verdict: str
    rationale: str
    why_selected: str
    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """One line of the table of all candidates."""

    candidate_id: str
    parents: str
    move: str
    status: str
    speedup: str
    detail: str
    cost: str
    """Of asking models for it; empty where none was."""
    kind: str
    """``passed``, ``failed`` or ``other``: the style class."""


def headline(tree: Tree, best: Node | None) -> str:
    """The outcome in one sentence."""
    operator, chip = tree.search.operator.name, tree.search.chip
    if tree.outcome in ("improved", "estimated") and best is not None:
        found = decisive(best)
        if found and found.estimate:
            compared = estimates.against(projection.final_ppm(tree, best), found.estimate.basis.value)
            said = f"A kernel of {operator} on {chip} that costs {estimates.cost(found.estimate)}: {compared}."
            return f"{said} {_sentence(estimates.MEANING[found.estimate.basis])}"
        speedup = found.speedup(tree.search.baseline) if found else None
        if speedup:
            return (
                f"A kernel of {operator} on {chip}, {_times(speedup.ratio_ppm)} as fast as "
                f"the {speedup.baseline} baseline ({_interval(speedup)}, 99.4 % interval)."
            )
    beaten = estimates.FIRST_DRAFT if tree.reference else "the baseline"
    endings = {
        "no_improvement": f"No kernel of {operator} on {chip} was shown to beat {beaten}.",
        "failed": f"The search for a kernel of {operator} on {chip} could not be carried out.",
        "cancelled": f"The search for a kernel of {operator} on {chip} was cancelled.",
    }
    if tree.paused and not tree.outcome:
        return f"The search for a kernel of {operator} on {chip} is paused: {tree.halted[1] or tree.halted[0]}"
    return endings.get(tree.outcome, f"The search for a kernel of {operator} on {chip} has not finished.")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def speedups(tree: Tree, best: Node | None) -> list[Row]:
    """Baseline, speedup, interval; of the re-measurement where there was one. Where nothing was timed: the first draft,
    how many times less than it, cost.
    """
    found = decisive(best)
    if best and found and found.estimate:
        basis = found.estimate.basis.value
        ratio = f"{_times(projection.final_ppm(tree, best))} {basis}"
        return [(estimates.FIRST_DRAFT, ratio, estimates.cost(found.estimate))]
    return [(s.baseline, _times(s.ratio_ppm), _interval(s)) for s in (found.speedups if found else ())]


def timings(best: Node | None) -> list[Row]:
    """Contestant, median, cold first call, blocks."""
    found = decisive(best)
    return [
        (t.name, _us(t.median_ns), _us(t.cold_ns), f"{len(t.block_ns)} × {t.calls_per_block}")
        for t in (found.timings if found else ())
    ]


def statuses(tree: Tree) -> list[Row]:
    """Status, count, and the first reason given for it."""
    rows: dict[str, tuple[int, str]] = {}
    for node in tree.nodes.values():
        count, first = rows.get(node.label, (0, ""))
        said = reason(node.evaluation) if node.evaluation and not node.passed else ""
        rows[node.label] = (count + 1, first or said)
    ordered = sorted(rows.items(), key=lambda row: (-row[1][0], row[0]))
    return [(name, str(count), first or NONE) for name, (count, first) in ordered]


def top(tree: Tree) -> list[Row]:
    """Rank, id, move, speedup, interval, time or cost, share of the speed of light, bound, trust; best first."""
    ranked = sorted(tree.passed(), key=lambda n: (-n.score_ppm, n.birth))[:TOP_SHOWN]
    return [_top_row(tree, rank, node) for rank, node in enumerate(ranked, start=1)]


def _top_row(tree: Tree, rank: int, node: Node) -> Row:
    found = node.evaluation
    assert found is not None, "a passed node has an evaluation"
    speedup = found.speedup(tree.search.baseline)
    own = next((t for t in found.timings if t.name not in {s.baseline for s in found.speedups}), None)
    won = " (winner)" if node.candidate_id == tree.winner_id else ""
    return (
        str(rank),
        node.candidate_id,
        node.move.name + won,
        _score(node),
        _interval(speedup) if speedup else NONE,
        estimates.cost(found.estimate) if found.estimate else _us(own.median_ns) if own else NONE,
        percent(found),
        found.diagnosis.bound.value,
        found.trust.value,
    )


def candidates(tree: Tree) -> list[CandidateRow]:
    """Every candidate in order of arrival: what the picture of the tree shows, for those who cannot see it."""
    return [
        CandidateRow(
            candidate_id=node.candidate_id,
            parents=", ".join(node.parent_ids) or "draft",
            move=node.move.name,
            status=node.label,
            speedup=_score(node) if node.passed else NONE,
            cost=spending.cell(node.usage),
            detail=f"pruned: {node.pruned}" if node.pruned else "" if node.passed else _said(node),
            kind="passed" if node.passed else "failed" if node.failed else "other",
        )
        for node in tree.nodes.values()
    ]


def lineage(tree: Tree, best: Node | None) -> list[Ancestor]:
    """From the first draft to ``best``."""
    line = list(tree.lineage(best.candidate_id)) if best else []
    return [_ancestor(node) for node in reversed(line)]


def _ancestor(node: Node) -> Ancestor:
    seen = node.context
    parts = [f"memory {seen.memory.value}", f"diagnosis {seen.diagnosis.value}"]
    for name, ids in (
        ("siblings", seen.sibling_ids),
        ("failures", seen.negative_ids),
        ("documents", seen.document_ids),
        ("skills", seen.skill_ids),
    ):
        if ids:
            parts.append(f"{name}: {', '.join(ids)}")
    return Ancestor(
        candidate_id=node.candidate_id,
        move=node.move.name,
        verdict=f"{node.label} {_score(node)}" if node.passed else f"{node.label} {_said(node)}".strip(),
        rationale=node.move.rationale,
        why_selected=listed(node.reasons),
        context="; ".join(parts),
    )


def facts(tree: Tree, result: Mapping[str, Any]) -> list[Row]:
    """What was asked and what it took."""
    search = tree.search
    rows = {
        "search": search.search_id,
        "operator": f"{search.operator.name} ({search.operator.source_hash[:12]})",
        "chip": search.chip,
        "policy": f"{search.policy}, seed {search.seed}",
        "budget": f"{search.budget.evaluations} evaluations{_model_budget(search.budget.model)}",
        "evaluations": f"{tree.charged} ({tree.duplicates} duplicates and {tree.rejected} refusals not counted)",
        "baseline": _divided_by(tree),
        "threads": str(search.threads),
        "ended by": str(tree.reason or tree.limit or "not yet"),
        "detail": str(result.get("detail") or ""),
        "models": spending.cell(tree.spent),
        "written without a model": _stood_in(result),
    }
    return [(name, value) for name, value in rows.items() if value]


def _divided_by(tree: Tree) -> str:
    if reference := tree.reference:
        cost = estimates.amount(reference.cost, reference.unit)
        return f"{estimates.FIRST_DRAFT}, {reference.candidate_id}: {cost} a call ({reference.basis.value})"
    return "faster of eager and compiled" if tree.search.baseline == "best" else tree.search.baseline


def endpoints(tree: Tree) -> list[Row]:
    """Endpoint, candidates settled, gains, tokens, cost."""
    return [
        (name, str(known.asked), str(known.gains), f"{known.tokens:,}", cost_text(known.cost_micro))
        for name, known in sorted(tree.endpoints.items())
    ]


def _model_budget(budget: ModelBudget) -> str:
    tokens = f", {budget.tokens:,} tokens of models" if budget.tokens else ""
    return tokens + (f", models for {cost_text(budget.cost_micro)}" if budget.cost_micro else "")


def _stood_in(result: Mapping[str, Any]) -> str:
    model = result.get("model") or {}
    return f"{model['stood_in']} candidates: {model['because']}" if model.get("stood_in") else ""


def environment(best: Node | None, result: Mapping[str, Any]) -> list[Row]:
    """Machine and versions of the deciding measurement."""
    found = decisive(best)
    entries = [(e.name, e.value) for e in found.environment] if found else []
    if found:
        entries += [("sandbox", found.sandbox), ("trust", found.trust.value)]
    known = {name for name, _ in entries}
    entries += [(str(k), str(v)) for k, v in result.get("environment", {}).items() if k not in known]
    return [(name, value) for name, value in entries if value]


def commands(result: Mapping[str, Any]) -> list[Row]:
    """What to type next."""
    run = shlex.quote(str(result.get("run_dir", "")))
    return [
        (f"kernelevolve replay {run}", "recompute every decision from the log and compare"),
        (f"kernelevolve explain {run} best", "why the best candidate was tried, what it saw, what was measured"),
        (f"kernelevolve replay {run} --fork-at N --policy mcts", "go on from event N under another policy"),
    ]


def decisive(best: Node | None) -> Evaluation | None:
    """The evaluation whose numbers are published: the final one where there is one."""
    if best is None:
        return None
    return best.final or best.evaluation


def speedup_text(speedup: Speedup) -> str:
    """``1.50× over eager (1.45× to 1.55×)``."""
    return f"{_times(speedup.ratio_ppm)} over {speedup.baseline} ({_interval(speedup)})"


def reason(evaluation: Evaluation) -> str:
    """The evidence in words."""
    return "; ".join(f"{e.name}: {e.value}" for e in evaluation.evidence)


def percent(evaluation: Evaluation) -> str:
    """Share of the speed of light; a dash while the floor is unknown."""
    line = evaluation.roofline
    return f"{line.fraction_ppm * 100 / PPM:.0f}\u00a0%" if line.floor_ns else NONE


def listed(entries: tuple[Entry, ...]) -> str:
    """``a = 1, b = 2``."""
    return ", ".join(f"{entry.name} = {entry.value}" for entry in entries)


def _said(node: Node) -> str:
    return reason(node.evaluation) if node.evaluation else ""


def _score(node: Node) -> str:
    """Labelled where it was not measured."""
    estimate = node.evaluation.estimate if node.evaluation else None
    return _times(node.score_ppm) + (f" {estimate.basis.value}" if estimate else "")


def _interval(speedup: Speedup) -> str:
    return f"{_times(speedup.low_ppm)} to {_times(speedup.high_ppm)}"


def _times(ppm: int) -> str:
    return f"{ppm / PPM:.3f}×"


def _us(ns: int) -> str:
    return f"{ns / NS_PER_US:,.1f}\u00a0µs" if ns else NONE
