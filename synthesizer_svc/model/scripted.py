"""A model that answers from a file: for tests, demonstrations and replays of recorded conversations.

The file is JSON: ``{"answers": [ANSWER, …]}``, each answer ``{"text": …}`` with optional ``prompt_hash`` (content hash
of the whole prompt), ``truncated``, ``error`` (a ``ModelError`` code), ``input_tokens``, ``output_tokens``,
``cost_micro``. A question is answered by the entry with its hash; otherwise by the next entry without one, in order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from shared import ids
from shared.errors import UserError
from shared.events import Usage
from synthesizer_svc.model import Completion, CompletionRequest, ModelError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    text: str = ""
    prompt_hash: str = ""
    truncated: bool = False
    error: str = ""
    usage: Usage = field(default_factory=Usage)


class ScriptedModel:
    """Plays ``answers``; raises ``ModelError("budget")`` when a question finds none left."""

    name = "scripted"

    def __init__(self, answers: tuple[Answer, ...]) -> None:
        self._by_hash = {answer.prompt_hash: answer for answer in answers if answer.prompt_hash}
        self._in_order = iter([answer for answer in answers if not answer.prompt_hash])

    async def complete(self, request: CompletionRequest) -> Completion:
        answer = self._by_hash.get(ids.content_hash(request.text.encode())) or next(self._in_order, None)
        if answer is None:
            raise ModelError("budget", "the script has no answer left")
        if answer.error:
            raise ModelError(answer.error, answer.text or "as scripted")
        return Completion(text=answer.text, truncated=answer.truncated, usage=answer.usage)


def load(path: Path) -> ScriptedModel:
    """Read a script.

    Raises:
        UserError: unreadable, not JSON, or not of the form above.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        answers = tuple(_answer(entry) for entry in raw["answers"])
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path), hint="MODEL_URL=scripted:PATH") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"is not a script of answers: {error!r}", where=str(path), hint='{"answers": [{"text": "…"}]}'
        ) from error
    return ScriptedModel(answers)


def _answer(entry: dict[str, object]) -> Answer:
    known = {"text", "prompt_hash", "truncated", "error", "input_tokens", "output_tokens", "cost_micro"}
    unknown = set(entry) - known
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    return Answer(
        text=_typed(entry, "text", str, ""),
        prompt_hash=_typed(entry, "prompt_hash", str, ""),
        truncated=_typed(entry, "truncated", bool, False),
        error=_typed(entry, "error", str, ""),
        usage=Usage(
            input_tokens=_typed(entry, "input_tokens", int, 0),
            output_tokens=_typed(entry, "output_tokens", int, 0),
            cost_micro=_typed(entry, "cost_micro", int, 0),
        ),
    )


def _typed(entry: dict[str, object], name: str, kind: type[T], default: T) -> T:
    value = entry.get(name, default)
    if not isinstance(value, kind):
        raise TypeError(f"{name} is not {kind.__name__}")
    return value
