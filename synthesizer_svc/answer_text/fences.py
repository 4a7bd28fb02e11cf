"""The fenced blocks of a Markdown answer, and what is said around them (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from synthesizer_svc.answer_text.outcome import Unparsable
from synthesizer_svc.answer_text.source import ANSWER_CHARS_MAX

FENCE_CHARS_MAX = 200
"""A longer line is no fence."""
RATIONALE_CHARS_MAX = 500
WRAPPERS = ("", "markdown", "md", "text", "txt", "plaintext")
"""Tags of blocks that may hold other blocks."""

_FENCE = re.compile(r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[^\s`]*)[^`\n]*$")
_THINKING_OPENS = re.compile(r"\s*<(?P<name>think|thinking|thought|reasoning)>")
_THINKING_ENDS = re.compile(r"</(?:think|thinking|thought|reasoning)>")
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) sorry|I (?:can(?:not|'t)|won't|am unable to)|as an AI)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """``body`` ends with a line break. ``tag`` is in lower case."""

    tag: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """``prose`` is the text outside the blocks, on one line and cut; ``unclosed``: the last fence stays open."""

    text: str
    blocks: tuple[Block, ...]
    unclosed: bool
    prose: str


def spoken(text: str, *, truncated: bool = False) -> str | Unparsable:
    """What an answer says when its thinking is left out.

    Thinking is what stands between ``<think>`` and ``</think>`` at the beginning; servers whose template opens it leave
    the first of them out.
    """
    if len(text) > ANSWER_CHARS_MAX:
        return Unparsable(code="too_long", detail=f"{len(text)} characters, at most {ANSWER_CHARS_MAX}")
    text = text.replace("\ufeff", "").replace("\r\n", "\n")
    opened = _THINKING_OPENS.match(text)
    ends = _THINKING_ENDS.search(text)
    if opened and not ends:
        return Unparsable(code="truncated", detail="the answer stops while thinking")
    if ends and (opened or not _FENCE_LINE.search(text, 0, ends.start())):
        text = text[ends.end() :]
    if not text.strip():
        why = "the answer stops before its first word" if truncated else "the answer has no text"
        return Unparsable(code="truncated" if truncated else "empty", detail=why)
    return text


_FENCE_LINE = re.compile(r"^[ ]{0,3}(?:`{3}|~{3})", re.MULTILINE)


def document(text: str) -> Document:
    """The blocks of ``text``; those inside a block of prose take its place, one level deep."""
    found = _blocks(text)
    blocks: list[Block] = []
    for block in found.blocks:
        inner = _blocks(block.body).blocks if block.tag in WRAPPERS else ()
        blocks += inner or (block,)
    return Document(text=text, blocks=tuple(blocks), unclosed=found.unclosed, prose=found.prose)


def _blocks(text: str) -> Document:
    blocks: list[Block] = []
    outside: list[str] = []
    fence, tag, body = "", "", list[str]()
    for line in text.split("\n"):
        match = _FENCE.match(line) if len(line) <= FENCE_CHARS_MAX else None
        if not fence:
            if match:
                fence, tag, body = match["fence"], match["tag"].lower(), []
            else:
                outside.append(line)
        elif match and not match["tag"] and match["fence"][0] == fence[0] and len(match["fence"]) >= len(fence):
            blocks.append(Block(tag=tag, body="\n".join(body) + "\n"))
            fence = ""
        else:
            body.append(line)
    prose = " ".join(" ".join(outside).split())[:RATIONALE_CHARS_MAX]
    return Document(text=text, blocks=tuple(blocks), unclosed=bool(fence), prose=prose)


def without_code(text: str) -> Unparsable:
    """Why a text without a block is no answer."""
    first = " ".join(text.split())[:120]
    if _REFUSAL.search(text):
        return Unparsable(code="refused", detail=first)
    if text.lstrip()[:1] in "{[":
        return Unparsable(code="code_in_json", detail=f"JSON instead of a fenced block: {first}")
    return Unparsable(code="no_block", detail=f"prose without a fenced block: {first}")
