"""What an emitter of a language is (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from shared.chips import Machine
from synthesizer_svc.schedule.graph import Unsupported
from synthesizer_svc.schedule.ir import Plan
from synthesizer_svc.schedule.schedule import Schedule, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A kernel's text, the compiler flags it must be built with, and the name it is called by."""

    source: str
    flags: tuple[str, ...]
    entry: str = "ke_launch"


Kind = TypeVar("Kind", bound=Machine)


def expected(machine: Machine, kind: type[Kind], language: str) -> Kind:
    """``machine`` as the kind that ``language`` is written for.

    Raises:
        Unsupported: it is another kind.
    """
    if not isinstance(machine, kind):
        raise Unsupported(language, f"is not written for {machine.name}")
    return machine


class Emitter(Protocol):
    """One language. Both methods are pure: equal arguments give byte-identical results."""

    def space(self, plan: Plan, machine: Machine, threads: int) -> Space:
        """The decisions this language leaves open for ``plan``."""
        ...

    def render(self, plan: Plan, schedule: Schedule, machine: Machine, threads: int) -> Emitted:
        """The kernel under ``schedule``, which must be complete for the space."""
        ...
