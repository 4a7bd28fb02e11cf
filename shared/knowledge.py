"""What the synthesizer asks of knowledge_svc: a port, in process when embedded and gRPC in a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.events import Bound, SkillDistilled


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeQuery:
    """Facets first, words second. Empty facets match everything.

    ``operator_class`` is a plan's group kinds, e.g. ``pointwise``, ``reduction``, ``contraction``, ``scan``;
    ``error`` is the error signature of a failed parent.
    """

    chip: str
    language: str
    operator_class: str = ""
    bound: Bound = Bound.UNKNOWN
    error: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One retrieved piece of documentation. ``score`` grows with relevance and compares within one answer only."""

    document_id: str
    title: str
    text: str
    score: float


class Knowledge(Protocol):
    async def retrieve(self, query: KnowledgeQuery, limit: int) -> tuple[Passage, ...]:
        """The most relevant passages, best first."""
        ...

    async def skills(self, query: KnowledgeQuery) -> tuple[SkillDistilled, ...]:
        """Skills that apply to the query's context and are not retracted, strongest claim first."""
        ...
