"""Limits of search_svc and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared import settings
from shared.settings import PortSettings

PREFIX = "SEARCH_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every field is a variable ``SEARCH_<FIELD>``.

    Raises:
        ValueError: a limit below 1.
    """

    trees_in_memory_max: int = 512
    """Searches kept decoded; others are read again from the journal when a fact for them arrives."""
    members: int = 1
    """Members of the consumer group in this process."""
    in_flight: int = 64
    """Facts in hand per member: partitions are handled side by side, so that one waits for no other's journal."""
    conflicts_max: int = 8
    """Times in a row that another owner may be first on one fact before the service gives up."""
    reissue_outstanding: bool = False
    """Publish outstanding requests again on start: for a bus that dies with its process."""

    sweep_s: float = 5.0
    """How often the searches that have not ended are looked at."""
    ask_again_after_s: float = 30.0
    """A search without a new fact for this long has its outstanding requests published again, under the ids they had;
    the pause doubles with each time. What is still being worked on is recognised by its id."""
    ask_again_max_s: float = 600.0
    watch_poll_s: float = 0.2
    """How often a watched journal is read for news; up to five times that while there are none."""
    pool_silence_s: float = 120.0
    """A worker not heard of for this long no longer counts as part of its pool."""

    def __post_init__(self) -> None:
        for name in ("trees_in_memory_max", "members", "in_flight", "conflicts_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("sweep_s", "ask_again_after_s", "ask_again_max_s", "watch_poll_s", "pool_silence_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0")


def from_env(environment: Mapping[str, str]) -> tuple[Settings, PortSettings]:
    """The service's settings and its ports'.

    Raises:
        UserError: naming the variable.
    """
    return settings.from_env(Settings, environment, PREFIX), settings.from_env(PortSettings, environment)
