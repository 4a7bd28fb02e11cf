"""Text of others, so written that it stays text: it cannot close its fence, pose as a heading or hide (pure).

What reaches a prompt from operators, kernels, documents, tools and models is material. Fences are longer than any run
of backticks inside, documents are Markdown quotations, everything else is one line. Characters that cannot be seen, or
that reorder what is seen, are spelled out (https://trojansource.codes, CVE-2021-42574), and so are the first characters
of marks that chat templates take for a change of speaker: servers look for those in quoted text, too.
"""

from __future__ import annotations

import re
import unicodedata

LINE_CHARS_MAX = 600
"""Of what is shown on one line: an evidence, a rationale, a title."""

_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories: control, format (zero width, bidirectional, tags), surrogates, line and paragraph separators."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Drawn as nothing, though of a category that is drawn."""
_VARIATION_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_SPEAKER = re.compile(
    r"<(?=[|｜])|<(?=/?(?:s|bos|eos|(?:start|end)_of_turn|think(?:ing)?|tool_(?:call|response)|eot)>)"
    r"|<(?=</?SYS>>)|\[(?=/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])",
    re.IGNORECASE,
)
"""Where marks of the usual chat templates begin: ChatML, Llama, DeepSeek, Mistral, Gemma."""
_BLOCK = re.compile(r"\A(?:#+(?= |\Z)|>|`{3,}|~{3,})")
"""What at the beginning of a line, or of a list's item, starts a heading, a quotation or a fence."""


def visible(text: str) -> str:
    """``text`` with every character that would not be seen written as ⟦U+XXXX⟧, and speaker marks broken."""
    text = text.replace("\r\n", "\n")
    if not text.isascii() or not text.replace("\n", "").replace("\t", "").isprintable():
        text = "".join(f"⟦U+{ord(c):04X}⟧" if _hidden(c) else c for c in text)
    return _SPEAKER.sub(lambda mark: f"⟦{mark[0]}⟧", text)


def inline(text: object, limit: int = LINE_CHARS_MAX) -> str:
    """``text`` on one line, cut at ``limit`` characters with a mark."""
    line = _BLOCK.sub(lambda mark: f"⟦{mark[0]}⟧", visible(" ".join(str(text).split())))
    return line if len(line) <= limit else f"{line[:limit]} [... {len(line) - limit} characters left out]"


def fenced(text: str, tag: str = "") -> str:
    """``text`` in a fence longer than any run of backticks inside it."""
    text = visible(text.strip("\n"))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{tag}\n{text}\n{fence}"


def quoted(text: str) -> str:
    """A document as a Markdown quotation, so that its headings do not become the prompt's."""
    return "\n".join(f"> {line}".rstrip() for line in visible(text.strip()).split("\n"))


def evidence(name: str, value: str) -> str:
    """A named value as an item of a list; one of several lines, such as a compiler's message, in a fence below it."""
    if "\n" not in value.strip():
        return f"- {inline(name)}: {inline(value)}"
    cut = value if len(value) <= LINE_CHARS_MAX else f"{value[:LINE_CHARS_MAX]}\n[... left out]"
    return f"- {inline(name)}:\n{fenced(cut)}"


def _hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    code = ord(character)
    return (
        unicodedata.category(character) in _HIDDEN
        or character in _BLANK_LETTERS
        or any(low <= code <= high for low, high in _VARIATION_SELECTORS)
    )
