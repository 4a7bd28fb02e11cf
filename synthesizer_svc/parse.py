"""From a model's text to one kernel source, or a typed rejection (pure).

The text is hostile input: it is never run here, never trusted to be complete, and "the whole reply as code" is never
an answer. Exactly one fenced block that defines the entry is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ANSWER_CHARS_MAX = 400_000
"""Longer answers are rejected unread; a kernel of 300 lines is about 15,000 characters."""
SOURCE_BYTES_MAX = 200_000
FENCE_CHARS_MAX = 200
"""A longer line is no fence."""
SIGNATURE_CHARS_MAX = 600
RATIONALE_CHARS_MAX = 500
LANGUAGE_TAGS = {"cpp": ("cpp", "c++", "cc", "cxx", "c")}

_FENCE = re.compile(r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[^\s`]*)[^`\n]*$")
_THINKING = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
# Unclosed comments and strings run on instead of failing, so that no text makes the scan quadratic.
_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\[^\n]|[^"\\\n])*"?', re.DOTALL)
_REFUSAL = re.compile(
    r"\b(?:I(?:'m| am) sorry|I (?:can(?:not|'t)|won't|am unable to)|as an AI)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """``rationale`` is the prose outside the blocks, on one line and cut."""

    source: str
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unparsable:
    """``code``: empty, too_long, truncated, refused, no_block, wrong_language, no_entry, several_blocks, unreadable."""

    code: str
    detail: str


def parse(text: str, *, language: str, entry: str = "ke_launch", truncated: bool = False) -> Parsed | Unparsable:
    """The one fenced block of ``language`` in ``text`` that defines ``entry``.

    ``truncated`` is what the endpoint said about its own answer; an unclosed fence says the same.
    """
    if len(text) > ANSWER_CHARS_MAX:
        return Unparsable(code="too_long", detail=f"{len(text)} characters, at most {ANSWER_CHARS_MAX}")
    text = _THINKING.sub("", text.replace("\r\n", "\n"))
    if not text.strip():
        return Unparsable(code="empty", detail="the answer has no text")
    blocks, unclosed, prose = _blocks(text)
    if truncated or unclosed:
        return Unparsable(code="truncated", detail="the answer stops before its end" if truncated else "unclosed fence")
    if not blocks:
        return _without_blocks(text)
    tags = LANGUAGE_TAGS.get(language, (language,))
    ours = [body for tag, body in blocks if not tag or tag in tags]
    if not ours:
        return Unparsable(code="wrong_language", detail=f"blocks of {sorted({t for t, _ in blocks})}, not {language}")
    oversized = next((body for body in ours if len(body) > SOURCE_BYTES_MAX), None)
    if oversized is not None:
        return _checked(oversized, prose)
    # Identical repeats are one block: models like to show the code again "in full".
    defining = list(dict.fromkeys(body for body in ours if _defines(body, entry)))
    if not defining:
        return Unparsable(code="no_entry", detail=f"no block defines {entry}")
    if len(defining) > 1:
        return Unparsable(code="several_blocks", detail=f"{len(defining)} different blocks define {entry}")
    return _checked(defining[0], prose)


def _blocks(text: str) -> tuple[list[tuple[str, str]], bool, str]:
    """``(tag, body)`` of every closed fence, whether the last one stays open, and the text outside."""
    blocks: list[tuple[str, str]] = []
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
            blocks.append((tag, "\n".join(body) + "\n"))
            fence = ""
        else:
            body.append(line)
    return blocks, bool(fence), " ".join(" ".join(outside).split())[:RATIONALE_CHARS_MAX]


def _defines(body: str, entry: str) -> bool:
    """A function of that name with a body, outside comments and strings: a call or a declaration is not enough."""
    code = re.sub(r"\s+", " ", _COMMENT_OR_STRING.sub(" ", body))
    signature = rf"\b{re.escape(entry)} ?\([^;{{}}]{{0,{SIGNATURE_CHARS_MAX}}}\) ?(?:noexcept ?)?\{{"
    return re.search(signature, code) is not None


def _without_blocks(text: str) -> Unparsable:
    first = " ".join(text.split())[:120]
    if _REFUSAL.search(text):
        return Unparsable(code="refused", detail=first)
    return Unparsable(code="no_block", detail=f"prose without a fenced block: {first}")


def _checked(source: str, prose: str) -> Parsed | Unparsable:
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > SOURCE_BYTES_MAX:
        return Unparsable(code="too_long", detail=f"a source of {size} bytes, at most {SOURCE_BYTES_MAX}")
    bad = next((c for c in source if (ord(c) < 32 and c not in "\t\n") or 0xD800 <= ord(c) <= 0xDFFF), None)
    if bad is not None:
        return Unparsable(code="unreadable", detail=f"control or surrogate character U+{ord(bad):04X} in the source")
    return Parsed(source=source, rationale=prose)
