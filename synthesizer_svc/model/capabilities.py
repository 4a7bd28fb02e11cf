"""What one endpoint can do and wants to be asked like: a record, not code (pure). Unknown is a value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum


class Protocol(StrEnum):
    OPENAI = "openai"
    """Chat completions, as vendors and local servers speak it."""
    ANTHROPIC = "anthropic"
    """Messages."""


class Support(StrEnum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class SchemaOutput(StrEnum):
    """How an answer is bound to a JSON schema."""

    SCHEMA = "json_schema"
    """Decoding follows the schema."""
    OBJECT = "json_object"
    """Decoding yields some JSON object; the schema is told in the prompt."""
    NONE = "none"
    """The schema is told in the prompt, and nothing more."""
    UNKNOWN = "unknown"
    """Asked for as ``json_schema``; when that is refused, told in the prompt."""


class Caching(StrEnum):
    """How a prompt's prefix is kept for the next question."""

    AUTOMATIC = "automatic"
    EXPLICIT = "explicit"
    """Only what is marked."""
    NONE = "none"
    UNKNOWN = "unknown"


class Reasoning(StrEnum):
    """Whether the model generates tokens that an answer does not show."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    NONE = "none"
    UNKNOWN = "unknown"


SAMPLING = ("temperature", "top_p", "top_k")
LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Token counts of 0 are unknown.

    Raises:
        ValueError: a value outside those named.
    """

    protocol: Protocol = Protocol.OPENAI
    sampling: tuple[str, ...] = ("temperature", "top_p")
    """Sampling fields accepted; the others are never sent."""
    seed: Support = Support.UNKNOWN
    """Whether ``seed`` is accepted; unknown: sent, and left out from then on when it is refused."""
    schema: SchemaOutput = SchemaOutput.UNKNOWN
    caching: Caching = Caching.UNKNOWN
    reasoning: Reasoning = Reasoning.UNKNOWN
    streaming: bool = True
    stream_usage: bool = True
    """Whether ``stream_options.include_usage`` is accepted."""
    limit_field: str = "max_tokens"
    """Name of the field that bounds the answer's tokens; OpenAI's reasoning models refuse ``max_tokens``."""
    context_tokens: int = 0
    """Prompt and answer together."""
    output_tokens: int = 0
    """Longest answer; a question that allows more is sent with this."""

    def __post_init__(self) -> None:
        unknown = set(self.sampling) - set(SAMPLING)
        if unknown:
            raise ValueError(f"sampling names {', '.join(sorted(unknown))}; known: {', '.join(SAMPLING)}")
        if self.limit_field not in LIMIT_FIELDS:
            raise ValueError(f"limit_field is {self.limit_field}; known: {', '.join(LIMIT_FIELDS)}")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{field.name} is {value}, expected 0 or more")
