"""Whether a search could run at all (pure)."""

from __future__ import annotations

from search_svc import policies
from search_svc.decide import LOGIC_VERSIONS
from shared.errors import UserError
from shared.events import SearchStarted
from shared.events.values import PRIORITIES

MOST = {
    "evaluations": 40_000,
    "threads": 1024,
    "candidates per expansion": 64,
    "expansions in flight": 256,
}
"""A tree is held in memory, a request names every kernel of its search and is one record, an expansion is one answer:
what is beyond these would take the services along."""

BASELINES = ("best", "eager", "compiled")
"""What a score may divide by."""


TEXT_MAX = 500
"""Characters of a name or reason: it is in every event about the search, and what no bus takes must not be stored."""


def short(text: str, where: str) -> str:
    """``text``. Raises ``UserError`` when it is longer than a name or reason may be."""
    if len(text) > TEXT_MAX:
        raise UserError(f"has {len(text)} characters, at most {TEXT_MAX}", where=where)
    return text


def check(search: SearchStarted) -> None:
    """Raises ``UserError``, naming what and how to mend it, for a search that could not run."""
    short(search.operator.name, "operator.name")
    policies.build(search.policy, search.policy_parameters)
    if search.logic_version not in LOGIC_VERSIONS:
        known = ", ".join(map(str, LOGIC_VERSIONS))
        raise UserError(
            f"unknown decision logic version {search.logic_version}", where="search", hint=f"known: {known}"
        )
    whole = {
        "evaluations": search.budget.evaluations,
        "threads": search.threads,
        "candidates per expansion": search.candidates_per_expansion,
        "expansions in flight": search.expansions_in_flight,
    }
    for what, value in whole.items():
        if value < 1:
            raise UserError(f"{what} must be at least 1, not {value}", where="search")
        if value > MOST[what]:
            raise UserError(f"{what} must be at most {MOST[what]}, not {value}", where="search")
    if search.priority not in PRIORITIES:
        low, high = PRIORITIES[0], PRIORITIES[-1]
        raise UserError(f"priority must be {low} to {high}, not {search.priority}", where="search")
    budget = search.budget
    steps = (budget.wall_ns, budget.stall, budget.target_speedup_ppm, budget.sol_fraction_ppm)
    if min(*steps, budget.model.tokens, budget.model.cost_micro) < 0:
        raise UserError("a limit is negative", where="search", hint="0 means no limit")
    if search.baseline not in BASELINES:
        raise UserError(f"unknown baseline `{search.baseline}`", where="search", hint=f"one of: {', '.join(BASELINES)}")
