"""The model port: a conversation in, text out, with what it cost. ``opening`` chooses the adapters.

Who implements it wraps the next one, from the outside in: what was answered before is answered from the record
(``recorded``), an endpoint is chosen (``routed``), money is reserved (``budgeted``), and the endpoint is asked, again
where that can help (``endpoint``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from shared import ids
from shared.errors import KernelEvolveError
from shared.events import EndpointRecord, ModelBudget, Usage
from shared.model_errors import ModelErrorCode

__all__ = [
    "Completion",
    "CompletionRequest",
    "Message",
    "Model",
    "ModelError",
    "ModelErrorCode",
    "Role",
]


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    text: str


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """One question of a conversation.

    ``system`` is the stable prefix that endpoints cache; ``messages`` begin and end with the user and alternate, so
    that a repair turn is the same conversation with two more. ``seed`` is best effort. ``output_tokens_max`` is a hard
    limit, ``deadline_s`` bounds the whole call, retries included. ``schema`` is a JSON schema, as canonical JSON, that
    the answer must be an instance of; empty for free text. ``search_id`` is whose budget pays.
    """

    system: str
    messages: tuple[Message, ...]
    seed: int
    output_tokens_max: int
    deadline_s: float
    schema: str = ""
    search_id: str = ""
    budget: ModelBudget = field(default_factory=ModelBudget)
    """What ``search_id`` may spend in all; zeros leave it to the deployment."""
    endpoints: tuple[EndpointRecord, ...] = ()
    """What each endpoint has brought ``search_id`` so far."""

    @property
    def text(self) -> str:
        """What is stored as the prompt, for people."""
        return "\n\n".join((self.system, *(message.text for message in self.messages)))

    @cached_property
    def hash(self) -> str:
        """Names the question: equal ones are answered alike, from the record when there is one.

        Who pays, who is asked and how long it may take is no part of it.
        """
        messages = [[message.role.value, message.text] for message in self.messages]
        asked = [self.system, messages, self.seed, self.output_tokens_max, self.schema]
        return ids.content_hash(ids.canonical_json(asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """An answer. ``truncated``: it stopped at a limit instead of at its own end. ``refused``: the endpoint says so."""

    text: str
    truncated: bool = False
    refused: bool = False
    usage: Usage = field(default_factory=Usage)
    endpoint: str = ""
    """Name of the endpoint in its configuration."""
    model: str = ""
    """As the endpoint names it in its answer."""


class ModelError(KernelEvolveError):
    """No answer. ``usage`` is what it cost all the same; ``pauses``: no further call can succeed until somebody acts
    or ``retry_after_s`` (0: unknown) have passed, so the search should wait instead of burning its evaluations.
    ``endpoint`` was sent requests for nothing; empty when none was sent.
    """

    def __init__(
        self,
        code: ModelErrorCode | str,
        detail: str,
        *,
        usage: Usage | None = None,
        pauses: bool = False,
        retry_after_s: float = 0.0,
        endpoint: str = "",
    ) -> None:
        self.code, self.detail, self.usage, self.pauses = str(code), detail, usage or Usage(), pauses
        self.retry_after_s, self.endpoint = retry_after_s, endpoint
        super().__init__(f"{self.code}: {detail}")


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
