"""Every domain event, as a frozen dataclass (pure).

Facts are in the past tense. Measurements are integers (nanoseconds, bytes, counts); ratios are parts per million
(``1_500_000`` = 1.5x), so that equal logs are equal bytes on every machine. Everything big (sources, prompts,
profiles, logs) is a blob named by its content hash.

Times named ``at_ns`` are the producer's wall clock, recorded so that decisions about time replay.

One module per proto file, each with the dataclasses of the messages of that file; import from here.
"""

from __future__ import annotations

from shared.events.candidate import (
    CandidateProduced,
    CandidateRejected,
    Context,
    EndpointRecord,
    ExpansionFailed,
    Memory,
    Move,
    MoveOutcome,
    Spend,
    Usage,
)
from shared.events.capacity import CapacityAnnounced, WorkerState
from shared.events.envelope import EVENT_TYPES, Envelope, Event
from shared.events.evaluation import (
    NOT_THE_KERNELS_FAULT,
    Basis,
    Bound,
    Count,
    Diagnosis,
    Estimate,
    Evaluation,
    EvaluationCompleted,
    EvaluationRequested,
    Purpose,
    Roofline,
    Speedup,
    StageTimes,
    Status,
    Timing,
    Trust,
)
from shared.events.search import (
    Budget,
    ExpansionRequested,
    NodePruned,
    Prior,
    SearchCancelled,
    SearchFinished,
    SearchForked,
    SearchPaused,
    SearchResumed,
    SearchStarted,
    WriterRecord,
)
from shared.events.skill import SkillDistilled, SkillRetired, SkillStatus
from shared.events.values import PPM, Entry, KernelRef, ModelBudget, OperatorRef

__all__ = [
    "EVENT_TYPES",
    "NOT_THE_KERNELS_FAULT",
    "PPM",
    "Basis",
    "Bound",
    "Budget",
    "CandidateProduced",
    "CandidateRejected",
    "CapacityAnnounced",
    "Context",
    "Count",
    "Diagnosis",
    "EndpointRecord",
    "Entry",
    "Envelope",
    "Estimate",
    "Evaluation",
    "EvaluationCompleted",
    "EvaluationRequested",
    "Event",
    "ExpansionFailed",
    "ExpansionRequested",
    "KernelRef",
    "Memory",
    "ModelBudget",
    "Move",
    "MoveOutcome",
    "NodePruned",
    "OperatorRef",
    "Prior",
    "Purpose",
    "Roofline",
    "SearchCancelled",
    "SearchFinished",
    "SearchForked",
    "SearchPaused",
    "SearchResumed",
    "SearchStarted",
    "SkillDistilled",
    "SkillRetired",
    "SkillStatus",
    "Speedup",
    "Spend",
    "StageTimes",
    "Status",
    "Timing",
    "Trust",
    "Usage",
    "WorkerState",
    "WriterRecord",
]
