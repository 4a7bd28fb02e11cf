"""What models, compilers and endpoints wrote, so that a terminal shows it and obeys none of it (pure)."""

from __future__ import annotations


def legible(text: str) -> str:
    """``text`` with every character that is not drawn, such as one that begins a terminal's command, as its escape."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
