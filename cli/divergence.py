"""Saying in one line how a replay differs from its log (pure)."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from shared.errors import ReplayDivergence

SIDE_SHOWN = 120
"""Characters shown of either side of one difference."""


def describe(error: ReplayDivergence) -> str:
    """The position, what differs, and the story of the node."""
    story = f"; story: {' -> '.join(error.story)}" if error.story else ""
    return f"replay differs from the log at entry {error.seq}: {difference(error.recorded, error.computed)}{story}"


def difference(recorded: object, computed: object) -> str:
    """Only the fields that differ when both sides are events of one type; both sides otherwise."""
    if type(recorded) is not type(computed) or not is_dataclass(recorded):
        return f"recorded {shown(recorded)}, computed {shown(computed)}"
    names = [f.name for f in fields(recorded) if getattr(recorded, f.name) != getattr(computed, f.name)]
    parts = [
        f"{name} recorded {shown(getattr(recorded, name))}, computed {shown(getattr(computed, name))}" for name in names
    ]
    return f"{type(recorded).__name__}: " + "; ".join(parts)


def shown(side: object) -> str:
    """At most ``SIDE_SHOWN`` characters of ``side``."""
    text = "nothing" if side is None else str(side)
    return text if len(text) <= SIDE_SHOWN else text[:SIDE_SHOWN] + "…"
