"""Wrapping an event for its journey: derived id, subject, partition key and topic (pure; the clock is passed in)."""

from __future__ import annotations

from shared import ids, topics
from shared.clock import Clock
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    CapacityAnnounced,
    Envelope,
    EvaluationCompleted,
    EvaluationRequested,
    Event,
    ExpansionFailed,
    ExpansionRequested,
    NodePruned,
    SkillDistilled,
    SkillRetired,
)


def envelope(
    event: Event,
    *,
    cause_id: str,
    source: str,
    clock: Clock,
    n: int = 0,
    attempt: int = 1,
    lease: str = "",
    traceparent: str = "",
) -> Envelope:
    """``event`` as the ``n``-th event of its type caused by the envelope ``cause_id``.

    The root of a search has no cause: its submitter passes the search's id.
    """
    return Envelope(
        id=ids.derive(cause_id, type(event).__name__, n),
        event=event,
        source=source,
        subject=subject_of(event),
        partition_key=key_of(event),
        causation_id=cause_id,
        correlation_id=_root_of(event),
        time_ns=clock.now_ns(),
        attempt=attempt,
        lease=lease,
        traceparent=traceparent,
    )


def topic_of(event: Event) -> str:
    """The topic ``event`` is published on."""
    match event:
        case ExpansionRequested():
            return topics.SYNTHESIS_REQUESTS
        case EvaluationRequested(chip=chip):
            return topics.evaluation_requests(chip)
        case SkillDistilled() | SkillRetired():
            return topics.SKILLS
        case CapacityAnnounced():
            return topics.CAPACITY
        case _:
            return topics.FACTS


def key_of(event: Event) -> str:
    """The value of the field that the topic's row in ``topics.TABLE`` names as key."""
    key: str = getattr(event, topics.describe(topic_of(event)).key)
    return key


def subject_of(event: Event) -> str:
    """The entity the event is about, as a path."""
    match event:
        case SkillDistilled() | SkillRetired():
            return f"skill/{event.skill_id}"
        case CapacityAnnounced():
            return f"worker/{event.worker_id}"
        case ExpansionRequested() | ExpansionFailed():
            return f"search/{event.search_id}/expansion/{event.expansion_id}"
        case CandidateProduced() | CandidateRejected() | NodePruned() | EvaluationRequested() | EvaluationCompleted():
            return f"search/{event.search_id}/candidate/{event.candidate_id}"
        case _:
            return f"search/{event.search_id}"


_NAMES = ("search_id", "expansion_id", "candidate_id", "evaluation_id", "skill_id", "worker_id", "chip")


def names(event: Event) -> dict[str, str]:
    """What the event is about, by field name: the entities it names, for logs and traces."""
    return {name: value for name in _NAMES if (value := getattr(event, name, ""))}


def _root_of(event: Event) -> str:
    match event:
        case SkillDistilled() | SkillRetired():
            return event.skill_id
        case CapacityAnnounced():
            return event.worker_id
        case _:
            return event.search_id
