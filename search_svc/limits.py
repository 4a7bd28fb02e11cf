"""When a search stops starting new work, and which named limit said so (pure).

What a person may choose is in the search's ``Budget``. The numbers here are decision logic, not settings: read from an
environment they would make a log replay differently on another machine.
"""

from __future__ import annotations

from search_svc.tree import Tree

ATTEMPTS_MAX = 3
"""Measurements of one candidate when the machine is noisy or our side fails."""

FINAL_ATTEMPTS_MAX = 6
"""The same for a would-be winner, on whom a whole search rests."""

FINAL_TRIES_MAX = 3
"""Would-be winners re-measured before the search admits that it has none."""

BARREN_ROW_MAX = 24
"""Expansions in a row without a new kernel, over the whole tree, after which the space counts as exhausted."""

FAILED_EXPANSIONS_ROW_MAX = 4
"""Failed expansions in a row after which the synthesizer counts as down."""

UNANSWERED_ROW_MAX = 4
"""Expansions in a row for which no model had any answer, after which the search waits for somebody to look."""

INFRASTRUCTURE_ROW_MAX = 4
"""Candidates in a row given up for failures on our side, after which the evaluators count as down."""

UNMEASURED_ROW_MAX = 8
"""Candidates in a row that no attempt could measure (24 measurements), after which the machine counts as too noisy.

What cannot be measured costs no evaluation, so that without this limit a search on such a machine would never end.
"""

UNSUPPORTED = "unsupported_operator"
"""ExpansionFailed code, and reason: the synthesizer cannot write a first kernel for this operator."""


def reached(tree: Tree) -> str:
    """The limit ``tree`` has reached, or an empty string; the order of the checks ranks the reasons."""
    return _goal(tree) or _breakdown(tree) or _effort(tree)


def _goal(tree: Tree) -> str:
    """A target speedup is one over the baseline; where costs are estimated, it is how many times less than the first
    draft a kernel must cost.
    """
    budget, best = tree.search.budget, tree.best
    if best is None or best.evaluation is None:
        return ""
    if budget.target_speedup_ppm and best.score_ppm >= budget.target_speedup_ppm:
        return "target_speedup"
    if budget.sol_fraction_ppm and best.evaluation.roofline.fraction_ppm >= budget.sol_fraction_ppm:
        return "sol_fraction"
    return ""


def _breakdown(tree: Tree) -> str:
    code, _ = tree.synthesis_failure
    if code == UNSUPPORTED and not tree.nodes:
        return UNSUPPORTED
    if code == "budget":
        return "synthesis_budget"
    if tree.failed_expansions_row >= FAILED_EXPANSIONS_ROW_MAX:
        return "synthesis_failed"
    if tree.infrastructure_row >= INFRASTRUCTURE_ROW_MAX:
        return "infrastructure"
    return "noise" if tree.unmeasured_row >= UNMEASURED_ROW_MAX else ""


def _effort(tree: Tree) -> str:
    budget = tree.search.budget
    if budget.wall_ns and tree.elapsed_ns >= budget.wall_ns:
        return "wall_clock"
    if budget.stall and tree.since_best >= budget.stall:
        return "stall"
    if tree.open_slots or tree.pending:
        return ""
    if tree.charged >= budget.evaluations:
        return "evaluations"
    if tree.barren_row >= BARREN_ROW_MAX:
        return "space_exhausted"
    nothing_left = not tree.root_open and next(tree.expandable(), None) is None
    return "space_exhausted" if nothing_left else ""
