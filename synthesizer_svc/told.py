"""What documents and skills told an expansion first: knowledge grows, and a question that was paid for must stay.

An expansion that is taken up again after a crash, or by another replica, finds its answers on record only when it asks
the same; skills that were distilled meanwhile would change its prompt, and a model would be asked and paid once more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shared import ids, json_codec
from shared.events import SkillDistilled
from shared.knowledge import Knowledge, KnowledgeQuery, Passage
from shared.store import Documents

TOLD = "synthesizer.told"
"""Collection: expansion and query -> passages and skills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    passages: tuple[Passage, ...]
    skills: tuple[SkillDistilled, ...]


async def ask(knowledge: Knowledge, query: KnowledgeQuery, documents_max: int) -> Told:
    """What ``knowledge`` tells now."""
    passages = await knowledge.retrieve(query, documents_max) if documents_max else ()
    return Told(passages=passages, skills=await knowledge.skills(query))


async def ask_once(
    documents: Documents, expansion_id: str, knowledge: Knowledge, query: KnowledgeQuery, documents_max: int
) -> Told:
    """What ``knowledge`` told ``expansion_id`` when it was first asked ``query``."""
    key = ids.derive(expansion_id, ids.content_hash(ids.canonical_json(asdict(query))))
    standing: Any = await documents.get(TOLD, key)
    if standing is not None:
        return _read(standing)
    told = await ask(knowledge, query, documents_max)
    standing = await documents.create(TOLD, key, _plain(told))
    return told if standing is None else _read(standing)


def _plain(told: Told) -> dict[str, Any]:
    return {
        "passages": [asdict(passage) for passage in told.passages],
        "skills": [json_codec.to_plain(skill) for skill in told.skills],
    }


def _read(standing: dict[str, Any]) -> Told:
    return Told(
        passages=tuple(Passage(**passage) for passage in standing["passages"]),
        skills=tuple(json_codec.from_plain(SkillDistilled, skill, TOLD) for skill in standing["skills"]),
    )
