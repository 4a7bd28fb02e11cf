"""SEARCH/REPLACE blocks against a parent's text, applied strictly (pure).

A block replaces whole lines that stand in the text exactly once, white space included. Guessing what was meant makes a
kernel that nobody wrote; a rejection that shows the nearest lines gets a better answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from synthesizer_svc.answer_text import fences, source, whole
from synthesizer_svc.answer_text.fences import RATIONALE_CHARS_MAX
from synthesizer_svc.answer_text.outcome import Parsed, Unparsable

EDITS_MAX = 64
SHOWN_LINES = 16
"""Of the text, around what a block may have meant."""
COMPARED_MAX = 2_000_000
"""Pairs of lines compared to find the nearest: beyond it, only a block's first lines are."""

_SEARCH = re.compile(r"^<{5,9} ?SEARCH[ \t]*$")
_DIVIDER = re.compile(r"^={5,9}[ \t]*$")
_REPLACE = re.compile(r"^>{5,9} ?REPLACE[ \t]*$")
_ANY_FENCE = re.compile(r"^[ ]{0,3}(?:`{3,}|~{3,})[^`\n]{0,100}$")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    search: str
    replace: str


def parse(text: str, parent: str, *, language: str, entry: str, truncated: bool = False) -> Parsed | Unparsable:
    """``parent`` after the edits in ``text``; or a whole kernel, where ``text`` is one and holds no edit."""
    said = fences.spoken(text, truncated=truncated)
    if isinstance(said, Unparsable):
        return said
    found = _edits(said)
    if isinstance(found, Unparsable):
        return found
    edits, prose = found
    if not edits:
        document = fences.document(said)
        return whole.of_document(document, language=language, entry=entry, truncated=truncated)
    if truncated:
        return Unparsable(code="truncated", detail="the answer stops before its end")
    edited = apply(parent, edits)
    if isinstance(edited, Unparsable):
        return edited
    return source.checked(edited, language, entry, prose)


def apply(parent: str, edits: tuple[Edit, ...]) -> str | Unparsable:
    """``parent`` after ``edits``, each made on what the ones before it left."""
    text = "\n" + parent.rstrip("\n") + "\n"
    for number, edit in enumerate(edits, start=1):
        wanted = f"\n{edit.search}\n"
        where = text.find(wanted) if edit.search.strip() else -1
        if where < 0:
            return _unmatched(number, edit, text)
        if text.find(wanted, where + 1) >= 0:
            return Unparsable(
                code="ambiguous_edit",
                detail=f"block {number}: its SEARCH lines stand in the kernel more than once",
                shown=edit.search[:2000],
            )
        put = f"\n{edit.replace}\n" if edit.replace else "\n"
        text = text[:where] + put + text[where + len(wanted) :]
    edited = text[1:]
    if edited.rstrip("\n") == parent.rstrip("\n"):
        return Unparsable(code="no_change", detail="the edits leave the kernel as it is")
    return edited


def _edits(text: str) -> tuple[tuple[Edit, ...], str] | Unparsable:
    """The blocks of ``text``, and the prose outside them."""
    edits: list[Edit] = []
    prose: list[str] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in text.split("\n"):
        if search is None:
            if _SEARCH.match(line):
                search = []
            elif not _ANY_FENCE.match(line):
                prose.append(line)
        elif replace is None:
            if _DIVIDER.match(line):
                replace = []
            else:
                search.append(line)
        elif _REPLACE.match(line):
            edits.append(Edit(search="\n".join(search), replace="\n".join(replace)))
            search = replace = None
        else:
            replace.append(line)
    if search is not None:
        return Unparsable(code="truncated", detail="the last SEARCH/REPLACE block is not closed")
    if len(edits) > EDITS_MAX:
        return Unparsable(code="too_long", detail=f"{len(edits)} blocks, at most {EDITS_MAX}")
    return tuple(edits), " ".join(" ".join(prose).split())[:RATIONALE_CHARS_MAX]


def _unmatched(number: int, edit: Edit, text: str) -> Unparsable:
    if not edit.search.strip():
        return Unparsable(code="unmatched_edit", detail=f"block {number}: its SEARCH part is empty")
    return Unparsable(
        code="unmatched_edit",
        detail=f"block {number}: its SEARCH lines do not stand in the kernel like that",
        shown=_nearest(edit.search.split("\n"), text[1:].split("\n")),
    )


def _nearest(wanted: list[str], lines: list[str]) -> str:
    """The lines that are most like ``wanted``: equal but for white space, else with the most words in common."""
    wanted = [line.strip() for line in wanted if line.strip()][: max(1, COMPARED_MAX // max(1, len(lines)))]
    if len(wanted) * len(lines) > COMPARED_MAX:
        return ""
    stripped = [line.strip() for line in lines]

    def equal(start: int) -> int:
        return sum(a == b for a, b in zip(wanted, stripped[start : start + len(wanted)], strict=False))

    best = max(range(len(lines)), key=equal)
    if not equal(best):
        words = [set(_WORD.findall(line)) for line in wanted[:4]]
        best = max(range(len(lines)), key=lambda i: max(len(w & set(_WORD.findall(stripped[i][:500]))) for w in words))
    first = max(0, best - 2)
    return "\n".join(line[:300] for line in lines[first : first + max(len(wanted), 4) + 4][:SHOWN_LINES])
