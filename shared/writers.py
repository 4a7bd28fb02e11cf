"""The ways of writing kernels, by the names that events give them (pure)."""

from __future__ import annotations

from shared.events import Context, Move

SCHEDULE = "schedule"
"""The writer that needs no model; a model's is its ``Context.asking``."""
INSTEAD_OF = "instead_of"
"""Parameter of a move that the schedule writer made because a model's conversation brought nothing: why not."""


def writer_of(context: Context) -> str:
    """Who was asked for a candidate."""
    return context.asking or SCHEDULE


def filled_in(move: Move) -> bool:
    """Whether the schedule writer made ``move`` in a model's place."""
    return any(entry.name == INSTEAD_OF for entry in move.parameters)
