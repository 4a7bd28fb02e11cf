"""The model port: text in, text out, with what it cost. ``open_model(url)`` chooses the adapter.

``none:`` (or empty) means no model, ``scripted:PATH`` canned answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from shared.errors import KernelEvolveError, UserError
from shared.events import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """One question. ``system`` is the stable prefix that endpoints cache; ``seed`` is best effort.

    ``deadline_s`` bounds the whole call, retries included; ``output_tokens_max`` is a hard limit.
    """

    system: str
    user: str
    seed: int
    output_tokens_max: int
    deadline_s: float

    @property
    def text(self) -> str:
        """What is hashed and stored as the prompt."""
        return f"{self.system}\n\n{self.user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer. ``truncated`` is true when the model stopped at a limit instead of at its own end."""

    text: str
    truncated: bool = False
    usage: Usage = field(default_factory=Usage)


class ModelError(KernelEvolveError):
    """No answer. ``code`` goes into ``CandidateRejected.code``: ``endpoint``, ``deadline``, ``budget``, ``refused``."""

    def __init__(self, code: str, detail: str) -> None:
        self.code, self.detail = code, detail
        super().__init__(f"{code}: {detail}")


class Model(Protocol):
    @property
    def name(self) -> str:
        """What is named in moves and reports, e.g. ``scripted``."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer ``request``.

        Raises:
            ModelError: no answer within the deadline and limits; retrying inside the call is the adapter's affair.
        """
        ...


def open_model(url: str) -> Model | None:
    """The model that ``url`` names, or None for "no model".

    Raises:
        UserError: an unknown scheme, one whose adapter is not in this version, or an unreadable script.
    """
    scheme, _, rest = url.partition(":")
    if url in ("", "none", "none:"):
        return None
    if scheme == "scripted":
        from synthesizer_svc.model.scripted import load

        return load(Path(rest))
    if scheme in ("http", "https"):
        raise UserError(
            "HTTP model endpoints are not part of this version",
            where=f"MODEL_URL={scheme}:…",
            hint="leave MODEL_URL unset to search without a model, or use scripted:PATH",
        )
    raise UserError(f"unknown model scheme `{scheme}`", where="MODEL_URL", hint="known: none:, scripted:PATH")
