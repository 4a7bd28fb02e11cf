"""What evaluator pools can take (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WorkerState(StrEnum):
    READY = "READY"
    DRAINING = "DRAINING"
    """Finishes what it has and takes nothing new."""
    GONE = "GONE"
    QUARANTINED = "QUARANTINED"
    """Found itself unsound: takes nothing new until it has passed its own test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnnounced:
    """A worker of a pool says what it can take: when it starts, when it drains, and every so often in between.

    Who was not heard of for a while is gone without having said so.
    """

    worker_id: str
    chip: str
    slots: int
    """Evaluations it makes at the same time."""
    state: WorkerState
    at_ns: int = 0
    reason: str = ""
    """Why it takes nothing; empty when it does."""
