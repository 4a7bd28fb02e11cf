"""The catalogue of held-out sets: which there are, what they demand, and which of them one evaluation gets (pure).

``oracle_child/values.py`` and ``oracle_child/catalogue.py`` make them from an operator's own inputs. A set that the
reference refuses, or on which it is not finite without being asked, is skipped by name. Layout has no set of its own:
the C ABI promises 64-byte alignment and contiguous tensors, every buffer set lies elsewhere, and its ends are guarded.

Admission uses all of them. A FINAL evaluation is held to all, under new seeds. A SEARCH evaluation gets the operator's
own inputs, the *core* (the sets that together kill every mutant) and a few others, drawn anew and secretly each time:
what a search is told about failures does not let it learn which sets it may fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluator_svc.cases import Case, Demand

OWN = "own inputs"
SPECIAL, INTEGERS, SMALL_CONSTANTS = "not_finite", "integers", "small_constants"
ONE_ELEMENT = "one_element_changed"
"""The first of the operator's own cases with another value in one place, given right after it at the same address: a
kernel that knows its inputs again by their address, shape or a few of their values answers the old question."""
HELD_OUT = (
    ONE_ELEMENT, SMALL_CONSTANTS, "scaled_up", INTEGERS, "constant_rows", "heavy_tails", "spikes", "scaled_down",
    "shifted", "all_equal", "mixed_conditioning", "outliers", "alternating", "clustered_maxima", "ties", "uniform",
    "large", "small", "zeros", "ones", "sorted", "denormals", "near_max", "lowest_integers", "highest_integers",
    "repeated_integers", "descending_integers", SPECIAL,
)  # fmt: skip
"""The most telling first: where memory is short, the last are left out."""
WITH_LOWER = frozenset(HELD_OUT[:11]) - {INTEGERS}
"""Sets on which the nearest lower precision is measured, too; on the operator's own inputs all are."""
ALL_LOWER, NEAREST_LOWER = "all", "nearest"
DEMANDS = {INTEGERS: Demand.INTEGERS, SPECIAL: Demand.FINITE_PART}
ALWAYS = frozenset({ONE_ELEMENT, "scaled_up", "constant_rows", "outliers", SMALL_CONSTANTS, INTEGERS})
"""In the core of every operator that has them: ranges, ties, outliers, constants and exact sums are where kernels go
wrong."""
DRAWN = 4
"""Sets outside the core that a SEARCH evaluation gets besides."""
KEPT = 8
"""Sets outside the core that a worker keeps after admission; which, is drawn, too."""
RELATIONS_DRAWN = 2
"""Relations that a SEARCH evaluation is held to; a FINAL one has ``RELATIONS_FINAL``."""
RELATIONS_FINAL = 8

Choose = Callable[[Sequence[int], int], Sequence[int]]
"""``random.Random.sample`` of a source nobody can predict."""


def chosen(cases: Sequence[Case], choose: Choose, *, final: bool) -> tuple[Case, ...]:
    """The cases of one evaluation, in the suite's order."""
    others = [index for index, case in enumerate(cases) if not case.public and not case.core]
    drawn = set(others if final else choose(others, min(DRAWN, len(others))))
    return tuple(case for index, case in enumerate(cases) if case.public or case.core or index in drawn)


def kept(cases: Sequence[Case], choose: Choose) -> tuple[Case, ...]:
    """The cases that a worker keeps for its SEARCH evaluations, after all of them served admission."""
    others = [index for index, case in enumerate(cases) if not case.public and not case.core]
    drawn = set(choose(others, min(KEPT, len(others))))
    return tuple(case for index, case in enumerate(cases) if case.public or case.core or index in drawn)
