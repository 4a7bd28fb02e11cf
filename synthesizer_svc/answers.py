"""What a writer hands back for one index of an expansion, before it becomes an event (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shared import ids
from shared.events import CandidateProduced, CandidateRejected, Context, ExpansionRequested, KernelRef, Move, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A kernel whose blobs are stored."""

    kernel: KernelRef
    move: Move
    context: Context
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten:
    """Nothing to evaluate, and why; ``code`` as in ``CandidateRejected``.

    ``context`` is None where no model was asked. ``pauses``: no model can answer until somebody acts.
    """

    code: str
    detail: str
    usage: Usage = field(default_factory=Usage)
    context: Context | None = None
    pauses: bool = False


def event(
    expansion: ExpansionRequested, index: int, answer: Written | Unwritten, at_ns: int
) -> CandidateProduced | CandidateRejected:
    """The fact that answers ``index`` of ``expansion``."""
    candidate_id = ids.derive(expansion.expansion_id, "candidate", index)
    if isinstance(answer, Unwritten):
        return CandidateRejected(
            search_id=expansion.search_id,
            expansion_id=expansion.expansion_id,
            candidate_id=candidate_id,
            index=index,
            code=answer.code,
            detail=_whole_characters(answer.detail),
            usage=answer.usage,
            at_ns=at_ns,
            context=answer.context or Context(memory=expansion.memory),
        )
    return CandidateProduced(
        search_id=expansion.search_id,
        expansion_id=expansion.expansion_id,
        candidate_id=candidate_id,
        index=index,
        kernel=answer.kernel,
        move=replace(answer.move, rationale=_whole_characters(answer.move.rationale)),
        context=answer.context,
        parent_ids=expansion.parent_ids,
        usage=answer.usage,
        at_ns=at_ns,
    )


def _whole_characters(said: str) -> str:
    """JSON can spell half a surrogate pair, which no event holds; a mark stands for it."""
    return said.encode("utf-8", "replace").decode()
