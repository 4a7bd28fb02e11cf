"""The questions that find out what an endpoint does, and what their answers show (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shared.events import Usage
from shared.usage import total
from synthesizer_svc.model import Completion, CompletionRequest, Message, Role
from synthesizer_svc.model.capabilities import Caching, Capabilities, Protocol, SchemaOutput, Support
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.estimate import most
from synthesizer_svc.model.prices import dearest_micro

DEADLINE_S = 120.0
ATTEMPTS_MAX = 2
"""At a question, of which one may have been answered; the prompt of the other may have been read all the same."""
ANSWER_TOKENS = 16
STORY_TOKENS = 24
SCHEMA_TOKENS = 64
SCHEMA = {
    "type": "object",
    "properties": {"tile": {"type": "integer", "enum": [8, 16, 32]}},
    "required": ["tile"],
    "additionalProperties": False,
}
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
PREFIX_WORDS = {Protocol.OPENAI: 1_300, Protocol.ANTHROPIC: 4_400}
"""In the prefix that is asked twice, a token each: OpenAI caches from 1,024 tokens on, Anthropic from 4,096 at most."""
TOKENS_PER_WORD = 2
"""In any vocabulary."""

_CONTEXT_FIELDS = (
    "max_model_len",
    "n_ctx",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
)


def answer_question() -> CompletionRequest:
    """Whether it answers at all."""
    return _question("Say: ready.", ANSWER_TOKENS)


def seeded_questions() -> tuple[CompletionRequest, CompletionRequest, CompletionRequest]:
    """The same seed twice, and another one."""
    asked = _question("Invent a name for a river on another planet, and say why.", STORY_TOKENS)
    return asked, asked, replace(asked, seed=asked.seed + 1)


def schema_question() -> CompletionRequest:
    """Prose is asked for, and a schema: one of them wins."""
    return replace(_question("Greet me in French, in one sentence.", SCHEMA_TOKENS), schema=json.dumps(SCHEMA))


def cached_question(settings: EndpointSettings, context_tokens: int) -> CompletionRequest:
    """To be asked twice: a prefix long enough to be cached, where it fits into half the context."""
    words = PREFIX_WORDS[settings.capabilities.protocol]
    if context_tokens:
        words = min(words, context_tokens // 2 // TOKENS_PER_WORD)
    prefix = " ".join(WORDS[number % len(WORDS)] for number in range(words))
    return replace(_question("Say: ready.", ANSWER_TOKENS), system=f"Ignore these words: {prefix}.")


def at_most(settings: EndpointSettings) -> Usage:
    """What all questions together can use, and cost."""
    questions = [answer_question(), *([cached_question(settings, 0)] * 2)]
    if settings.capabilities.seed is not Support.NO:
        questions += seeded_questions()
    if settings.capabilities.schema is not SchemaOutput.NONE:
        questions += [schema_question()] * 2
    answered = [most(question) for question in questions]
    in_vain = [replace(one, output_tokens=0, requests=0) for one in answered] * (ATTEMPTS_MAX - 1)
    return total(
        *(replace(one, cost_micro=dearest_micro(one, settings.prices)) for one in (*answered, *in_vain)),
    )


def seed_support(first: Completion, again: Completion, other: Completion) -> Support:
    """Unknown where all three are equal: it may ignore seeds and not sample at all."""
    if first.text != again.text:
        return Support.NO
    return Support.YES if other.text != first.text else Support.UNKNOWN


def follows_schema(answer: Completion) -> bool:
    try:
        told = json.loads(answer.text)
    except ValueError:
        return False
    return isinstance(told, dict) and set(told) == {"tile"} and told["tile"] in (8, 16, 32)


def is_object(answer: Completion) -> bool:
    try:
        return isinstance(json.loads(answer.text), dict)
    except ValueError:
        return False


def caching(before: Capabilities, again: Completion) -> Caching:
    """What the second of two questions with one prefix shows; who caches and does not say so shows none."""
    if not again.usage.cached_tokens:
        return Caching.NONE if before.caching is not Caching.UNKNOWN else Caching.UNKNOWN
    return Caching.EXPLICIT if before.caching is Caching.EXPLICIT else Caching.AUTOMATIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What the endpoint's list of models says. ``context_tokens`` 0: nothing."""

    names: tuple[str, ...]
    context_tokens: int = 0


def listed(told: object, model: str) -> Listed | None:
    """The list of models, or None for what is none."""
    entries = told.get("data", told.get("models")) if isinstance(told, dict) else None
    if not isinstance(entries, list):
        return None
    named = [(entry, _name(entry)) for entry in entries if isinstance(entry, dict)]
    found = next((entry for entry, name in named if name == model), None)
    if found is None and len(named) == 1:
        found = named[0][0]  # a server of one model takes any name
    return Listed(names=tuple(name for _, name in named if name), context_tokens=_context(found) if found else 0)


def _name(entry: Mapping[str, Any]) -> str:
    name = entry.get("id", entry.get("name"))
    return name if isinstance(name, str) else ""


def _context(entry: Mapping[str, Any]) -> int:
    meta = entry.get("meta")
    for table in (entry, meta if isinstance(meta, dict) else {}):
        for field in _CONTEXT_FIELDS:
            value = table.get(field)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 0


def _question(text: str, tokens: int) -> CompletionRequest:
    return CompletionRequest(
        system="You are terse.",
        messages=(Message(role=Role.USER, text=text),),
        seed=1,
        output_tokens_max=tokens,
        deadline_s=DEADLINE_S,
    )


def numbers(values: Sequence[int]) -> str:
    """``1,234 / 5``."""
    return " / ".join(f"{value:,}" for value in values)
