"""The one JSON object that answers a question with a schema (pure).

Endpoints that hold a model to the schema send the object alone. Others send it in a fence or between sentences, which
is taken too; two different objects, or one that breaks off, are not.
"""

from __future__ import annotations

import json
from typing import Any

from synthesizer_svc.answer_text import fences
from synthesizer_svc.answer_text.outcome import Unparsable

CHARS_MAX = 40_000
"""A choice of three changes with its reason has a few hundred characters."""
STARTS_MAX = 50
"""Places where an object may begin that are tried."""
NESTING_MAX = 16
"""Of objects and lists; a choice has three. What can be parsed may still be too deep for whoever walks through it."""


def parse(text: str, *, key: str, truncated: bool = False) -> dict[str, Any] | Unparsable:
    """The object in ``text`` that has ``key``."""
    said = fences.spoken(text, truncated=truncated)
    if isinstance(said, Unparsable):
        return said
    if len(said) > CHARS_MAX:
        return Unparsable(code="too_long", detail=f"{len(said)} characters, at most {CHARS_MAX}")
    found = [value for value in _objects(said) if key in value]
    distinct = list({json.dumps(value, sort_keys=True): value for value in found}.values())
    if len(distinct) == 1:
        return distinct[0]
    if len(distinct) > 1:
        return Unparsable(code="several_choices", detail=f"{len(distinct)} different objects with `{key}`")
    if truncated:
        return Unparsable(code="truncated", detail="the answer stops before its end")
    prose = fences.without_code(said)
    if prose.code == "refused":
        return prose
    first = " ".join(said.split())[:120]
    return Unparsable(code="bad_json", detail=f"no JSON object with `{key}`: {first}")


def _objects(text: str) -> list[dict[str, Any]]:
    """Objects that stand in ``text``, none inside another."""
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refused)
    found: list[dict[str, Any]] = []
    start, tried = text.find("{"), 0
    while start >= 0 and tried < STARTS_MAX:
        tried += 1
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if not _deep(value):
                found.append(value)
        start = text.find("{", end)
    return found


def _deep(value: Any) -> bool:
    """Whether lists and objects stand more than ``NESTING_MAX`` deep in ``value``."""
    level = [value]
    for _ in range(NESTING_MAX):
        inner = [
            list(each.values()) if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)
        ]
        level = [each for values in inner for each in values]
    return any(isinstance(each, dict | list) for each in level)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return dict(pairs)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
