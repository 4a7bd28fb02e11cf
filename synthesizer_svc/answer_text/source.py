"""What the text of a kernel must be in each language before anybody builds it (pure)."""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache

from shared.submissions.kernel import HOSTED
from synthesizer_svc.answer_text.outcome import Parsed, Unparsable

ANSWER_CHARS_MAX = 400_000
"""Longer answers are rejected unread; a kernel of 300 lines is about 15,000 characters."""
SOURCE_BYTES_MAX = 200_000
SIGNATURE_CHARS_MAX = 600
NESTING_MAX = 40
"""Brackets inside brackets of a module: deeper ones take Python's parser out of linear time, and no kernel has them."""
BRACES_MAX = 5_000
"""In a module: its parser takes quadratic time for the holes of one f-string, seconds for 50,000 of them."""
TAGS = {
    "cpp": ("cpp", "c++", "cc", "cxx", "c"),
    "c-rvv": ("c", "c-rvv", "cpp", "c++"),
    "cuda": ("cuda", "cpp", "c++", "cu"),
    "hip": ("hip", "cpp", "c++", "cuda"),
    "python": ("python", "py", "python3"),
    "triton": ("python", "py", "python3", "triton"),
}

# Unclosed comments and strings run on instead of failing, so that no text makes the scan quadratic.
_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\[^\n]|[^"\\\n])*"?', re.DOTALL)


def tags(language: str) -> tuple[str, ...]:
    """What blocks of ``language`` are tagged with, besides nothing."""
    return TAGS.get(language, (language,))


def defines(body: str, language: str, entry: str) -> bool:
    """Whether ``body`` defines ``entry``: a call, a declaration, a comment or a string is not enough."""
    if language in HOSTED:
        return entry in _module(body)[1]
    code = re.sub(r"\s+", " ", _COMMENT_OR_STRING.sub(" ", body))
    signature = rf"\b{re.escape(entry)} ?\([^;{{}}]{{0,{SIGNATURE_CHARS_MAX}}}\) ?(?:noexcept ?)?\{{"
    return re.search(signature, code) is not None


def syntax_error(body: str, language: str) -> str:
    """What makes ``body`` no module, with its line; empty when it is one, and for languages that a compiler reads."""
    return _module(body)[0] if language in HOSTED else ""


def unreadable(source: str) -> Unparsable | None:
    """Why ``source`` is no text of a kernel at all: its size, or characters that no editor writes."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > SOURCE_BYTES_MAX:
        return Unparsable(code="too_long", detail=f"a source of {size} bytes, at most {SOURCE_BYTES_MAX}")
    bad = next((c for c in source if (ord(c) < 32 and c not in "\t\n") or 0xD800 <= ord(c) <= 0xDFFF), None)
    if bad is not None:
        return Unparsable(code="unreadable", detail=f"control or surrogate character U+{ord(bad):04X} in the source")
    return None


def checked(source: str, language: str, entry: str, rationale: str) -> Parsed | Unparsable:
    """``source`` as a kernel, when it is one of ``language`` that defines ``entry``."""
    problem = unreadable(source)
    if problem is not None:
        return problem
    wrong = syntax_error(source, language)
    if wrong:
        return Unparsable(code="syntax", detail=wrong)
    if not defines(source, language, entry):
        return Unparsable(code="no_entry", detail=f"the kernel does not define {entry}")
    return Parsed(source=source, rationale=rationale)


@lru_cache(maxsize=16)
def _module(body: str) -> tuple[str, frozenset[str]]:
    """What is wrong with ``body`` as a module, and what its own level defines. It is parsed, never run."""
    if len(body) > SOURCE_BYTES_MAX or _nesting(body) > NESTING_MAX:
        return f"longer than {SOURCE_BYTES_MAX} characters, or brackets nested deeper than {NESTING_MAX}", frozenset()
    if body.count("{") > BRACES_MAX:
        return f"more than {BRACES_MAX} braces", frozenset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings: the kernel's affair
            module = ast.parse(body)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}", frozenset()
    except (ValueError, RecursionError, MemoryError) as error:
        return f"no Python: {type(error).__name__}", frozenset()
    return "", frozenset(node.name for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef))


def _nesting(body: str) -> int:
    """Depth of brackets, those in strings and comments counted too."""
    depth = deepest = 0
    for bracket in re.findall(r"[(\[{}\])]", body):
        depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest
