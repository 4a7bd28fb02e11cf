"""A whole kernel in one fenced block (pure)."""

from __future__ import annotations

from synthesizer_svc.answer_text import fences, source
from synthesizer_svc.answer_text.fences import Document
from synthesizer_svc.answer_text.outcome import Parsed, Unparsable
from synthesizer_svc.answer_text.source import SOURCE_BYTES_MAX


def parse(text: str, *, language: str, entry: str = "ke_launch", truncated: bool = False) -> Parsed | Unparsable:
    """The one fenced block of ``language`` in ``text`` that defines ``entry``.

    ``truncated`` is what the endpoint said about its own answer; an unclosed fence says the same.
    """
    said = fences.spoken(text, truncated=truncated)
    if isinstance(said, Unparsable):
        return said
    return of_document(fences.document(said), language=language, entry=entry, truncated=truncated)


def of_document(found: Document, *, language: str, entry: str, truncated: bool) -> Parsed | Unparsable:
    """``parse``, of an answer whose blocks are known."""
    if truncated or found.unclosed:
        return Unparsable(code="truncated", detail="the answer stops before its end" if truncated else "unclosed fence")
    if not found.blocks:
        return fences.without_code(found.text)
    tags = source.tags(language)
    ours = [block.body for block in found.blocks if not block.tag or block.tag in tags]
    if not ours:
        others = sorted({block.tag for block in found.blocks})
        code = "code_in_json" if others == ["json"] else "wrong_language"
        return Unparsable(code=code, detail=f"blocks of {others}, not {language}"[:300])
    oversized = next((body for body in ours if len(body) > SOURCE_BYTES_MAX), None)
    if oversized is not None:
        return source.checked(oversized, language, entry, found.prose)
    # Identical repeats are one block: models like to show the code again "in full".
    ours = list(dict.fromkeys(ours))
    defining = [body for body in ours if source.defines(body, language, entry)]
    if len(defining) > 1:
        return Unparsable(code="several_blocks", detail=f"{len(defining)} different blocks define {entry}")
    if defining:
        return source.checked(defining[0], language, entry, found.prose)
    if len(ours) == 1:
        return source.checked(ours[0], language, entry, found.prose)
    return Unparsable(code="no_entry", detail=f"no block defines {entry}")
