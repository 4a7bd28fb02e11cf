"""Python text as a literal of Python text, as readable as it allows (pure)."""

from __future__ import annotations

QUOTES = "'''"


def literal(text: str) -> str:
    """An expression whose value is exactly ``text``: one raw block where that can spell it, else a line per line."""
    plain = "\\" not in text and QUOTES not in text and not text.endswith("'") and "\r" not in text
    if plain and all(c.isprintable() or c in "\n\t" for c in text):
        return f"r{QUOTES}{text}{QUOTES}"
    lines = text.splitlines(keepends=True) or [""]
    return "(\n" + "".join(f"    {line!r}\n" for line in lines) + ")"
