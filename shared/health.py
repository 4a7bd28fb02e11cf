"""Whether a service is alive and ready, as a value that probes read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shared import timestamps


class Phase(StrEnum):
    STARTING = "starting"
    RECOVERING = "recovering"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A dependency that does not answer."""

    since_ns: int
    """Wall time of the first ping in a row that failed."""
    reason: str


@dataclass(slots=True)
class Health:
    """Written by the runtime alone. ``detail`` is one line, empty unless something went wrong."""

    service: str
    phase: Phase = Phase.STARTING
    detail: str = ""
    gone: Mapping[str, Gone] = field(default_factory=dict)
    """Dependencies that do not answer now, by name; shared by the services of a process."""
    hindered: Callable[[], str] = str
    """Why the service itself takes no work now; empty when it does."""

    @property
    def ready(self) -> bool:
        """May it be given work?"""
        return self.phase is Phase.READY and not self.gone and not self.hindered()

    @property
    def live(self) -> bool:
        """Should its supervisor leave it alone? A dependency that is gone is no reason to restart whoever waits."""
        return self.phase not in (Phase.STOPPED, Phase.FAILED)

    @property
    def explanation(self) -> str:
        """One line for people: why it is not ready; empty when it is."""
        if self.ready:
            return ""
        missing = "; ".join(
            f"{name} gone since {timestamps.to_text(gone.since_ns)}: {gone.reason}" for name, gone in self.gone.items()
        )
        hindered = self.hindered() if self.phase is Phase.READY else ""
        return missing or hindered or self.detail or self.phase.value
