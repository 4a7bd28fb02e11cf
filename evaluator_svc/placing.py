"""Cases beside a runner's outputs: on a GPU, where these lie there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evaluator_svc.arrays import Array
from evaluator_svc.cases import Case, Reference
from evaluator_svc.freshness import Flip, Fresh

Place = Callable[[Array], Array]
"""A copy of an array beside the outputs, or the array itself where it lies there."""


def case_beside(case: Case, place: Place) -> Case:
    """``case`` with all that calls are given and judged by."""
    return replace(
        case,
        inputs=tuple(place(data) for data in case.inputs),
        references=tuple(_reference(reference, place) for reference in case.references),
    )


def fresh_beside(fresh: Fresh, place: Place) -> Fresh:
    """The same of a draw for timed calls."""
    return replace(
        fresh,
        case=case_beside(fresh.case, place),
        flips=tuple(_flip(flip, place) for flip in fresh.flips),
    )


def _reference(reference: Reference, place: Place) -> Reference:
    exact = place(reference.exact)
    return replace(
        reference,
        exact=exact,
        declared=exact if reference.declared is reference.exact else place(reference.declared),
        magnitude=None if reference.magnitude is None else place(reference.magnitude),
    )


def _flip(flip: Flip, place: Place) -> Flip:
    return replace(flip, changed=tuple((place(at), place(after)) for at, after in flip.changed))
