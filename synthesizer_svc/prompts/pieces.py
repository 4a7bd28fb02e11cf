"""Parts of a prompt as pieces that can be shown, shortened or left out (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from synthesizer_svc.prompts.budget import PartName
from synthesizer_svc.prompts.quoting import fenced
from synthesizer_svc.prompts.rendering import render
from synthesizer_svc.prompts.tokens import TokenCounter

HEAD = 2 / 3
"""Of what is kept of a source, this much is its beginning."""
TRIES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One thing of a part. ``source`` is what may be shortened; ``quote`` makes it harmless."""

    template: str
    values: Mapping[str, object] = field(default_factory=dict)
    source: str = ""
    quote: Callable[[str], str] = fenced
    id: str = ""
    """Of the document, skill or kernel that it shows."""

    def text(self, source: str | None = None) -> str:
        """As shown, with ``source`` in the place of its own."""
        shown = self.source if source is None else source
        return render(self.template, **self.values, source=self.quote(shown) if shown else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``pieces`` in the order shown, which is that of their value."""

    name: PartName
    pieces: tuple[Piece, ...]
    heading: str = ""
    joint: str = "\n\n"


def shortened(piece: Piece, tokens: int, counter: TokenCounter) -> str | None:
    """``piece`` with so much of its source that it has at most ``tokens``; None when even its frame has more."""
    if not piece.source:
        return None
    kept = len(piece.source) * tokens / max(counter.count(piece.text()), 1)
    for _ in range(TRIES):
        text = piece.text(middle_cut(piece.source, int(kept)))
        if counter.count(text) <= tokens:
            return text
        kept *= 0.75
    text = piece.text(middle_cut(piece.source, 0))
    return text if counter.count(text) <= tokens else None


def middle_cut(text: str, chars: int) -> str:
    """Beginning and end of ``text``, about ``chars`` characters in whole lines, with a mark where the middle was."""
    if len(text) <= chars:
        return text
    lines = text.split("\n")
    head = _lines_within(lines, int(chars * HEAD))
    tail = _lines_within(lines[head:][::-1], chars - int(chars * HEAD))
    if head + tail == 0 and chars > 0:  # one line is longer than all that may be shown
        first = int(chars * HEAD)
        last = chars - first
        return f"{text[:first]} [... {len(text) - chars} characters left out ...] {text[len(text) - last :]}"
    mark = f"[... {len(lines) - head - tail} lines left out ...]"
    return "\n".join([*lines[:head], mark, *lines[len(lines) - tail :]])


def _lines_within(lines: list[str], chars: int) -> int:
    """How many of the first ``lines`` have at most ``chars`` characters together."""
    count = 0
    for line in lines:
        chars -= len(line) + 1
        if chars < 0:
            break
        count += 1
    return count
