"""Two-stage retrieval: facets choose the documents, ranked text orders their sections (pure).

A facet excludes a document only when both sides name it and they contradict each other; a facet that either side
leaves open excludes nothing. Facets that agree raise a document above others with equally fitting words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from knowledge_svc.documents import Document
from shared.events import Bound, SkillDistilled, SkillStatus
from shared.knowledge import KnowledgeQuery, Passage

FACET_GAIN = 0.25
"""How much one agreeing facet multiplies the text's relevance by, beyond 1. Chosen on the table of queries in the
tests: much above it facets drown the words."""
BOUND_GAIN = 1.0
"""The same for an agreeing bottleneck, divided by the number of those that a document is about: what limits a kernel
decides what its next change should be, and a page on every bottleneck says least about this one."""
ERROR_GAIN = 2.0
"""The same for a matching error signature: whoever repairs a kernel needs the pages on its failure before any other."""
NO_ERROR = 0.5
"""What is left of the relevance of a page on failures for a kernel that passed and whose bottleneck is known."""
GAIN_FLOOR = 0.05
"""Score per gain where no word matches: orders documents for a query that has facets only."""

_WORD = re.compile(r"[A-Za-z0-9_]+")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a an and are as at be by can do does for from how i in is it its my of on or should that the this to what "
        "when where which why with"
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipFacets:
    """What the documents' facets say of a chip; empty when the chip is unknown."""

    vendors: tuple[str, ...] = ()
    architecture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A section whose text matches. ``relevance`` is positive and compares within one search only."""

    document_id: str
    section: int
    relevance: float


Search = Callable[[Sequence[str]], Sequence[Hit]]


def retrieve(
    query: KnowledgeQuery, chip: ChipFacets, documents: Sequence[Document], search: Search, limit: int
) -> tuple[Passage, ...]:
    """The best section of each of the ``limit`` most relevant documents, best first; ties by document id."""
    gains = {d.id: value for d in documents if (value := gain(query, chip, d)) is not None}
    best: dict[str, Hit] = {}
    for hit in search(_sought(query, chip)):
        if hit.document_id in gains and hit.document_id not in best:
            best[hit.document_id] = hit
    passages = []
    for document in documents:
        gained = gains.get(document.id)
        hit = best.get(document.id, Hit(document_id=document.id, section=0, relevance=0.0))
        if gained is None or (hit.relevance == 0.0 and (gained == 0.0 or query.words)):
            continue
        relevance = hit.relevance * (NO_ERROR if _on_failures_alone(query, document) else 1)
        score = relevance * (1 + gained) + GAIN_FLOOR * gained
        passages.append(_passage(document, hit.section, round(score, 6)))
    return tuple(sorted(passages, key=lambda p: (-p.score, p.document_id))[: max(limit, 0)])


def rank_skills(
    query: KnowledgeQuery, skills: Sequence[SkillDistilled], *, retracted: bool = False
) -> tuple[SkillDistilled, ...]:
    """Skills about the query's operator class, strongest claim first; ``retracted`` ones, when wanted, last.

    Skills measured on another chip, language or bottleneck are kept as priors, behind those measured in the query's
    own context. Among equals supported ones come first, then those whose pessimistic end promises the most.
    """
    wanted = set(operator_classes(query.operator_class))

    def rank(skill: SkillDistilled) -> tuple[bool, int, bool, int, str]:
        gone = skill.status is SkillStatus.RETRACTED
        same = (
            skill.chip == query.chip,
            skill.language == query.language,
            query.bound in (Bound.UNKNOWN, skill.bound),
        )
        return gone, -sum(same), skill.status is not SkillStatus.SUPPORTED, skill.high_ppm, skill.skill_id

    fitting = (
        skill
        for skill in skills
        if (retracted or skill.status is not SkillStatus.RETRACTED)
        and (not wanted or not skill.operator_class or skill.operator_class in wanted)
    )
    return tuple(sorted(fitting, key=rank))


def gain(query: KnowledgeQuery, chip: ChipFacets, document: Document) -> float | None:
    """What the facets that ``document`` and the query both name and agree on add; None when one contradicts."""
    facets = (
        _agrees((document.vendor,), chip.vendors),
        _agrees((document.architecture,), (chip.architecture,)),
        _agrees(document.languages, (query.language,)),
        _agrees(document.operator_classes, operator_classes(query.operator_class)),
    )
    bound = _agrees(document.bounds, () if query.bound is Bound.UNKNOWN else (query.bound.value,))
    error = _matches(document.error_signatures, query.error)
    if False in (*facets, bound, error):
        return None
    by_bound = BOUND_GAIN / len(document.bounds) if bound else 0.0
    return FACET_GAIN * facets.count(True) + by_bound + (ERROR_GAIN if error else 0.0)


def operator_classes(text: str) -> tuple[str, ...]:
    """``"reduction+pointwise"`` -> ``("reduction", "pointwise")``; any mark that is not of a word separates."""
    return tuple(_WORD.findall(text.lower()))


def words(query: KnowledgeQuery) -> tuple[str, ...]:
    """Words to look for, each once, in the query's order."""
    bound = "" if query.bound is Bound.UNKNOWN else query.bound.value
    text = f"{query.words} {query.operator_class} {bound} {query.error}".lower()
    return tuple(dict.fromkeys(word for word in _WORD.findall(text) if word not in _STOP_WORDS))


def _sought(query: KnowledgeQuery, chip: ChipFacets) -> tuple[str, ...]:
    """The query's words for the full text; a vendor's name has done its work as a facet and would drown the rest."""
    every = words(query)
    return tuple(word for word in every if word not in chip.vendors) or every


def _agrees(document: Sequence[str], query: Sequence[str]) -> bool | None:
    """True: they meet. False: both name values and none is common. None: a side is open."""
    wanted = {value.lower() for value in query if value}
    offered = {value.lower() for value in document if value}
    return bool(wanted & offered) if wanted and offered else None


def _on_failures_alone(query: KnowledgeQuery, document: Document) -> bool:
    passed = not query.error and query.bound is not Bound.UNKNOWN
    return passed and bool(document.error_signatures) and not document.bounds


def _matches(signatures: Sequence[str], error: str) -> bool | None:
    if not signatures or not error:
        return None
    return any(signature.lower() in error.lower() for signature in signatures)


def _passage(document: Document, number: int, score: float) -> Passage:
    section = document.sections[number]
    title = document.title if section.heading == document.title else f"{document.title}: {section.heading}"
    return Passage(document_id=document.id, title=title, text=section.text, score=score)
