"""Every event there is, and the envelope one travels and is journalled in (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from shared.events.candidate import CandidateProduced, CandidateRejected, ExpansionFailed
from shared.events.capacity import CapacityAnnounced
from shared.events.evaluation import EvaluationCompleted, EvaluationRequested
from shared.events.search import (
    ExpansionRequested,
    NodePruned,
    SearchCancelled,
    SearchFinished,
    SearchForked,
    SearchPaused,
    SearchResumed,
    SearchStarted,
)
from shared.events.skill import SkillDistilled, SkillRetired

Event = (
    SearchStarted
    | SearchForked
    | SearchPaused
    | SearchResumed
    | ExpansionRequested
    | CandidateProduced
    | CandidateRejected
    | ExpansionFailed
    | EvaluationRequested
    | EvaluationCompleted
    | NodePruned
    | SearchCancelled
    | SearchFinished
    | SkillDistilled
    | SkillRetired
    | CapacityAnnounced
)


EVENT_TYPES: tuple[type[Event], ...] = (
    SearchStarted,
    SearchForked,
    SearchPaused,
    SearchResumed,
    ExpansionRequested,
    CandidateProduced,
    CandidateRejected,
    ExpansionFailed,
    EvaluationRequested,
    EvaluationCompleted,
    NodePruned,
    SearchCancelled,
    SearchFinished,
    SkillDistilled,
    SkillRetired,
    CapacityAnnounced,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An event with its CloudEvents attributes. ``time_ns`` is information only: no decision reads it."""

    id: str
    """Derived from the cause; the dedupe key."""
    event: Event
    source: str
    """Who published it, e.g. ``/evaluator/cpu-x86_64``."""
    subject: str
    """The entity, e.g. ``search/<id>/candidate/<id>``."""
    partition_key: str
    causation_id: str
    correlation_id: str
    """The search."""
    time_ns: int = 0
    attempt: int = 1
    lease: str = ""
    """Fencing token of the worker's device lease, if it held one."""
    traceparent: str = ""
