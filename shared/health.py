"""Whether a service is alive and ready, as a value that probes read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    STARTING = "starting"
    RECOVERING = "recovering"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(slots=True)
class Health:
    """Written by the runtime alone. ``detail`` is one line, empty unless something went wrong."""

    service: str
    phase: Phase = Phase.STARTING
    detail: str = ""

    @property
    def ready(self) -> bool:
        """May it be given work?"""
        return self.phase is Phase.READY

    @property
    def live(self) -> bool:
        """Should its supervisor leave it alone?"""
        return self.phase not in (Phase.STOPPED, Phase.FAILED)
