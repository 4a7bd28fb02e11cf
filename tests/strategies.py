"""Hypothesis strategies for events, built from the dataclasses' own annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from shared.events import EVENT_TYPES, Basis, Envelope, Estimate, Evaluation, Status, Trust
from shared.shapes import INT64_MAX, INT64_MIN, Field, Kind, fields_of

WORDS = st.text(max_size=8)
NAMES = st.text(min_size=1, max_size=8)


def instances(owner: type) -> st.SearchStrategy[Any]:
    """Valid instances of a dataclass of ``shared.events``."""
    values = st.fixed_dictionaries({field.name: _field(field) for field in fields_of(owner)})
    kept = _INVARIANTS.get(owner)
    return values.map(lambda found: owner(**(kept(found) if kept else found)))


def envelopes() -> st.SearchStrategy[Envelope]:
    """Envelopes around any event."""
    return st.builds(
        Envelope,
        id=NAMES,
        event=st.one_of([instances(owner) for owner in EVENT_TYPES]),
        source=NAMES,
        subject=NAMES,
        partition_key=NAMES,
        causation_id=WORDS,
        correlation_id=NAMES,
        time_ns=st.integers(0, INT64_MAX),
        attempt=st.integers(1, 1_000_000),
        lease=WORDS,
        traceparent=WORDS,
    )


def _field(field: Field) -> st.SearchStrategy[Any]:
    one = _one(field)
    if field.optional:
        return st.none() | one
    return st.lists(one, max_size=3).map(tuple) if field.repeated else one


def _one(field: Field) -> st.SearchStrategy[Any]:
    match field.kind:
        case Kind.TEXT:
            return NAMES if field.identifies else WORDS
        case Kind.INTEGER:
            return st.integers(INT64_MIN, INT64_MAX)
        case Kind.BOOLEAN:
            return st.booleans()
        case Kind.ENUM:
            return st.sampled_from(list(field.type))
        case Kind.NESTED:
            return st.deferred(lambda: instances(field.type))


def _verdict(values: dict[str, Any]) -> dict[str, Any]:
    """Evaluation's own invariant: a speedup or an estimate, never both, needs PASSED, and PASSED needs trust."""
    if values["status"] is not Status.PASSED:
        return {**values, "speedups": (), "estimate": None}
    trust = Trust.L1 if values["trust"] is Trust.NONE else values["trust"]
    return {**values, "trust": trust, "estimate": None if values["speedups"] else values["estimate"]}


def _estimate(values: dict[str, Any]) -> dict[str, Any]:
    """Estimate's own invariant: a positive cost in a named unit that nobody measured."""
    basis = Basis.MODELLED if values["basis"] is Basis.MEASURED else values["basis"]
    return {**values, "basis": basis, "cost": max(1, abs(values["cost"]) & INT64_MAX), "unit": values["unit"] or "ns"}


_INVARIANTS: dict[type, Callable[[dict[str, Any]], dict[str, Any]]] = {Evaluation: _verdict, Estimate: _estimate}
