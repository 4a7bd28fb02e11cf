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

    trees_in_memory_max: int = 64
    """Searches kept decoded; others are read again from the journal when a fact for them arrives."""
    members: int = 1
    """Members of the consumer group in this process."""
    conflicts_max: int = 8
    """Times in a row that another owner may be first on one fact before the service gives up."""
    reissue_outstanding: bool = False
    """Publish outstanding requests again on start: for a bus that dies with its process."""

    def __post_init__(self) -> None:
        for name in ("trees_in_memory_max", "members", "conflicts_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


def from_env(environment: Mapping[str, str]) -> tuple[Settings, PortSettings]:
    """The service's settings and its ports'.

    Raises:
        UserError: naming the variable.
    """
    return settings.from_env(Settings, environment, PREFIX), settings.from_env(PortSettings, environment)
