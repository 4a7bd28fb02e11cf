"""Every topic, in one table: its key, its partitions and how long it is kept (pure)."""

from __future__ import annotations

from dataclasses import dataclass

FACTS = "search.facts.v1"
SYNTHESIS_REQUESTS = "synthesis.requests.v1"
SKILLS = "knowledge.skills.v1"
CAPACITY = "evaluation.capacity.v1"
EVALUATION_REQUESTS_PREFIX = "evaluation.requests."
DEAD_LETTER_SUFFIX = ".dlq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """``key`` names the field records are partitioned by; ``retention_ms`` is -1 for "for ever"."""

    name: str
    key: str
    partitions: int
    retention_ms: int
    compacted: bool = False


WEEK_MS = 7 * 24 * 3600 * 1000

TABLE = (
    Topic(name=FACTS, key="search_id", partitions=16, retention_ms=WEEK_MS),
    Topic(name=SYNTHESIS_REQUESTS, key="expansion_id", partitions=16, retention_ms=WEEK_MS),
    Topic(name=SKILLS, key="skill_id", partitions=4, retention_ms=-1, compacted=True),
    Topic(name=CAPACITY, key="worker_id", partitions=1, retention_ms=-1, compacted=True),
)


def evaluation_requests(chip: str) -> str:
    """Work queue of one chip type: ``evaluation.requests.<chip>.v1``."""
    return f"{EVALUATION_REQUESTS_PREFIX}{chip}.v1"


def chip_of(topic: str) -> str:
    """The chip whose work queue ``topic`` is; empty for any other topic."""
    if not topic.startswith(EVALUATION_REQUESTS_PREFIX) or topic.endswith(DEAD_LETTER_SUFFIX):
        return ""
    return topic.removeprefix(EVALUATION_REQUESTS_PREFIX).rpartition(".")[0]


def dead_letters(topic: str) -> str:
    """Where the poison of ``topic`` goes."""
    return topic + DEAD_LETTER_SUFFIX


def describe(name: str) -> Topic:
    """The table's row for ``name``; evaluation and dead-letter topics follow their families' rules."""
    for topic in TABLE:
        if topic.name == name:
            return topic
    if name.endswith(DEAD_LETTER_SUFFIX):
        return Topic(name=name, key="as source", partitions=1, retention_ms=-1)
    if name.startswith(EVALUATION_REQUESTS_PREFIX):
        return Topic(name=name, key="candidate_id", partitions=32, retention_ms=WEEK_MS)
    raise KeyError(name)
