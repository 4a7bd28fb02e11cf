"""Knowledge for a process that has none at hand: no documents, no skills, and moves ranked by their priors."""

from __future__ import annotations

from shared.events import SkillDistilled
from shared.knowledge import KnowledgeQuery, Passage


class NoKnowledge:
    """Answers every query with nothing."""

    async def retrieve(self, query: KnowledgeQuery, limit: int) -> tuple[Passage, ...]:  # noqa: ARG002
        return ()

    async def skills(self, query: KnowledgeQuery) -> tuple[SkillDistilled, ...]:  # noqa: ARG002
        return ()
