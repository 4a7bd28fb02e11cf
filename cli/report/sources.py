"""Kernel sources for the page: highlighted text and differences (pure)."""

from __future__ import annotations

import difflib
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

LEXERS = {"cpp": "cpp", "c": "c", "cuda": "cuda", "hip": "cuda", "triton": "python", "cute": "python"}
"""Pygments' name of each kernel language; others are shown plain."""
CSS_CLASS = "code"
LIGHT, DARK = "default", "monokai"


def highlighted(text: str, language: str) -> Markup:
    """``text`` as an HTML block."""
    return _block(text, LEXERS.get(language, "text"))


def difference(before: str, after: str, before_id: str, after_id: str) -> Markup:
    """Unified difference as an HTML block; says so when there is none."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), before_id, after_id, lineterm="")
    return _block("\n".join(lines) or "(the sources are equal; the flags differ)", "diff")


def styles() -> str:
    """Style rules for both themes; backgrounds are the page's."""
    light, dark = (_rules(HtmlFormatter(style=style, nobackground=True)) for style in (LIGHT, DARK))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def _rules(formatter: Any) -> str:
    return str(formatter.get_style_defs(f".{CSS_CLASS}"))


def _block(text: str, lexer: str) -> Markup:
    formatter = HtmlFormatter(cssclass=CSS_CLASS, wrapcode=True)
    return Markup(highlight(text, get_lexer_by_name(lexer), formatter))  # noqa: S704 - pygments escapes the text
