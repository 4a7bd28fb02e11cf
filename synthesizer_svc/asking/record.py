"""A conversation as JSON lines: the blob that ``Context.conversation_hash`` names (pure).

Each line is an object with ``role``:

==========  ========================================================================================================
system      ``text``; ``asking`` and ``schema`` of the question
user        ``text``; ``request`` is the hash that the answer is on record under
assistant   ``text`` as it came; ``hash`` (SHA-256 of it), ``usage``, ``endpoint``, ``model``, ``truncated``,
            ``refused``
error       no answer: ``code``, ``detail``, ``usage``
outcome     what the answer was read as: ``code`` is ``kernel``, ``build`` (``detail`` is what a compiler said) or that
            of a rejection; ``kernel_id``, where there is one
==========  ========================================================================================================
"""

from __future__ import annotations

from typing import Any

from shared import ids
from shared.events import Usage
from shared.json_codec import to_plain
from synthesizer_svc.answer_text import Unparsable
from synthesizer_svc.model import Completion, CompletionRequest, ModelError

KERNEL, BUILD = "kernel", "build"
"""Codes of outcomes that are no rejections."""


class Record:
    """Lines, in order."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []

    def asked(self, request: CompletionRequest, asking: str) -> None:
        """Another question; the first one brings the system's text."""
        if not self._lines:
            self._lines.append(
                {"role": "system", "text": request.system, "asking": asking, "schema": request.schema},
            )
        self._lines.append({"role": "user", "text": request.messages[-1].text, "request": request.hash})

    def answered(self, completion: Completion, usage: Usage) -> None:
        self._lines.append(
            {
                "role": "assistant",
                "text": completion.text,
                "hash": ids.content_hash(completion.text.encode("utf-8", "surrogatepass")),
                "usage": to_plain(usage),
                "endpoint": completion.endpoint,
                "model": completion.model,
                "truncated": completion.truncated,
                "refused": completion.refused,
            }
        )

    def failed(self, error: ModelError, usage: Usage) -> None:
        self._lines.append({"role": "error", "code": error.code, "detail": error.detail, "usage": to_plain(usage)})

    def came_to(self, code: str, detail: str = "", kernel_id: str = "") -> None:
        self._lines.append({"role": "outcome", "code": code, "detail": detail, "kernel_id": kernel_id})

    def rejected(self, problem: Unparsable) -> None:
        self.came_to(problem.code, problem.detail)

    def to_bytes(self) -> bytes:
        return b"".join(ids.canonical_json(_storable(line)) + b"\n" for line in self._lines)


def _storable(line: dict[str, Any]) -> dict[str, Any]:
    """Half a surrogate pair, which a model may write, has no bytes; a mark stands for it."""
    return {
        name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        for name, value in line.items()
    }
