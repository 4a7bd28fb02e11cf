"""Searches on a server, as text and as JSON (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from cli import estimates, spending
from cli.legible import legible
from cli.phases import PAUSED
from protos.search.v1 import search_service_pb2 as pb
from shared import proto_codec
from shared.events import PPM, Basis, Usage
from shared.usage import by_a_model, in_words

NS_PER_S = 1_000_000_000


def plain(search: pb.Search) -> dict[str, Any]:
    """A search as a JSON object; unknown numbers are null."""
    usage = _spent(search)
    return {
        "search_id": search.search_id,
        "operator": search.operator_name,
        "chip": search.chip,
        "policy": search.policy,
        "priority": search.priority,
        "phase": search.phase,
        "outcome": search.outcome or None,
        "reason": search.reason or None,
        "detail": search.detail or None,
        "evaluations": {"charged": search.charged, "budget": search.budget_evaluations},
        "nodes": search.nodes,
        "evaluating": search.evaluating,
        "synthesizing": search.synthesizing,
        "best": {"candidate_id": search.best_candidate_id, **_over(search, search.best_speedup_ppm)}
        if search.best_candidate_id
        else None,
        "winner": {
            "candidate_id": search.winner_id,
            **_over(search, search.winner_speedup_ppm),
            "ci_low": None if search.basis else search.winner_low_ppm / PPM,
            "ci_high": None if search.basis else search.winner_high_ppm / PPM,
        }
        if search.winner_id
        else None,
        "estimate": {
            "basis": search.basis,
            "unit": search.cost_unit,
            "first_draft": search.reference_cost,
            "best": search.best_cost,
        }
        if search.basis
        else None,
        "submitted_at": search.submitted_at.ToJsonString(),
        "elapsed_seconds": search.elapsed_ns / NS_PER_S,
        "eta_seconds": search.eta_ns / NS_PER_S if search.eta_ns >= 0 else None,
        "journal_length": search.journal_length,
        "model": spending.plain(usage) if by_a_model(usage) else None,
    }


def _over(search: pb.Search, ppm: int) -> dict[str, float | None]:
    """A speedup, or, where nothing was timed, how many times less than the first draft it costs."""
    return {"speedup": None, "times_less": ppm / PPM} if search.basis else {"speedup": ppm / PPM}


def lines(search: pb.Search) -> list[str]:
    """A search for a person."""
    text = [
        f"search    {search.search_id}",
        f"operator  {search.operator_name} on {search.chip}, policy {search.policy}"
        + (f", priority {search.priority}" if search.priority else ""),
        f"state     {_state(search)}" + (f": {legible(search.detail)}" if search.detail else ""),
        f"tried     {search.charged} of {search.budget_evaluations} evaluations; {search.nodes} candidates",
    ]
    if search.phase == PAUSED:
        text.append(f"go on     kernelevolve resume {search.search_id}")
    elif not search.outcome:
        text.append(f"open      {search.synthesizing} being written, {search.evaluating} being evaluated")
    if search.basis and search.best_candidate_id:
        text += _estimated(search)
    elif search.winner_id:
        interval = f"{search.winner_low_ppm / PPM:.2f} to {search.winner_high_ppm / PPM:.2f}"
        text.append(f"speedup   {search.winner_speedup_ppm / PPM:.2f}x; 99.4 % interval {interval}, re-measured")
    elif search.best_candidate_id:
        text.append(f"best      {search.best_speedup_ppm / PPM:.2f}x so far, not re-measured")
    if by_a_model(_spent(search)):
        text.append(f"models    {in_words(_spent(search))}")
    eta = f", about {search.eta_ns // NS_PER_S} s to go" if search.eta_ns >= 0 and not search.outcome else ""
    text.append(f"time      submitted {search.submitted_at.ToJsonString()}, {search.elapsed_ns // NS_PER_S} s{eta}")
    return text


def _estimated(search: pb.Search) -> list[str]:
    """Of a search whose kernels are not timed."""
    ppm = search.winner_speedup_ppm or search.best_speedup_ppm
    cost = estimates.amount(search.best_cost, search.cost_unit)
    stage = "" if search.winner_id else " so far"
    said = f"cost      {cost} a call{stage}, {estimates.against(ppm, search.basis)}"
    return [said, f"          {estimates.MEANING[Basis(search.basis)]}"]


def table(searches: Iterable[pb.Search]) -> Table:
    """One line per search."""
    shown = Table(box=None, pad_edge=False)
    for column in ("search", "operator", "chip", "policy", "state"):
        shown.add_column(column, no_wrap=column == "search")
    for column in ("tried", "speedup"):
        shown.add_column(column, justify="right", no_wrap=True)
    for search in searches:
        tried = f"{search.charged}/{search.budget_evaluations}"
        names = (search.search_id, search.operator_name, search.chip, search.policy, _state(search))
        shown.add_row(*(Text(name) for name in names), tried, _speedup(search))
    return shown


def _spent(search: pb.Search) -> Usage:
    usage = proto_codec.from_message(Usage, search.spent)
    assert isinstance(usage, Usage)
    return usage


def _state(search: pb.Search) -> str:
    if search.phase == PAUSED:
        return f"paused ({search.reason})"
    return f"{search.outcome} ({search.reason})" if search.outcome else search.phase


def _speedup(search: pb.Search) -> str:
    ppm = search.winner_speedup_ppm or search.best_speedup_ppm
    basis = f" {search.basis}" if search.basis else ""
    return f"{ppm / PPM:.2f}x{basis}" if ppm else "-"
