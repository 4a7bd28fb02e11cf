"""What an emitter of a language is (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from shared.chips import Isa
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A kernel's text and the compiler flags it must be built with."""

    source: str
    flags: tuple[str, ...]


class Emitter(Protocol):
    """One language. Both methods are pure: equal arguments give byte-identical results."""

    def space(self, plan: Plan, isa: Isa, threads: int) -> Space:
        """The decisions this language leaves open for ``plan``."""
        ...

    def render(self, plan: Plan, schedule: Schedule, isa: Isa, threads: int) -> Emitted:
        """The kernel under ``schedule``, which must be complete for the space."""
        ...
