"""Every choice and limit of the synthesizer, with its name and default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared import settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """``MODEL_*``: which model writes kernels beside the schedules, and what it may spend per kernel.

    Raises:
        ValueError: a share outside 0 to 100, or a limit below 1.
    """

    url: str = ""
    """``scripted:PATH``; empty searches without a model."""
    share_percent: int = 50
    """Share of an expansion's candidates that the model writes."""
    output_tokens_max: int = 16_000
    deadline_s: float = 300.0
    """For one answer, retries included."""
    quoted_kernels_max: int = 2
    """Siblings, and failures, quoted in a prompt: each."""

    def __post_init__(self) -> None:
        if not 0 <= self.share_percent <= 100:
            raise ValueError(f"share_percent is {self.share_percent}, expected 0 to 100")
        if self.output_tokens_max < 1 or self.deadline_s <= 0 or self.quoted_kernels_max < 0:
            raise ValueError("limits must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``SYNTHESIZER_*``.

    Raises:
        ValueError: a limit below 1, or a negative number of documents.
    """

    documents_max: int = 4
    """Passages retrieved per expansion."""
    renders_max: int = 400
    """Schedules rendered per expansion before it counts as exhausted."""
    operators_max: int = 32
    """Captured operators kept in memory."""
    capture_s: float = 120.0
    """For capturing one operator."""
    members: int = 1
    """Members of the consumer group in this process."""
    in_flight: int = 16
    """Expansions in hand per member: partitions are handled side by side, so that none waits for a slow model or the
    capture of another operator."""

    def __post_init__(self) -> None:
        counts = (self.renders_max, self.operators_max, self.members, self.in_flight, self.documents_max + 1)
        if min(counts) < 1 or self.capture_s <= 0:
            raise ValueError("limits must be positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    model: ModelSettings = field(default_factory=ModelSettings)
    limits: Limits = field(default_factory=Limits)
    knowledge_url: str = ""
    """``KNOWLEDGE_URL``, ``grpc://host:port``: where a synthesizer of its own asks; empty: it writes without."""


def from_env(environment: Mapping[str, str]) -> Settings:
    """Settings from environment variables.

    Raises:
        UserError: names the variable that does not parse or is out of range.
    """
    return Settings(
        model=settings.from_env(ModelSettings, environment, "MODEL_"),
        limits=settings.from_env(Limits, environment, "SYNTHESIZER_"),
        knowledge_url=environment.get("KNOWLEDGE_URL", "").strip(),
    )
