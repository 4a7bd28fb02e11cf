"""The step from an operator to something that schedules can be rendered on: a port (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from shared.chips import Machine
from shared.operators import OperatorSpec
from synthesizer_svc.schedule.emit import Emitted
from synthesizer_svc.schedule.schedule import Schedule, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What kernels are written for."""

    language: str
    machine: Machine
    threads: int


class Lowered(Protocol):
    """An operator planned for a target.

    ``kinds`` maps a group to its class; ``operator_class`` is the classes of all, most work first, blank-separated.
    """

    @property
    def space(self) -> Space: ...
    @property
    def kinds(self) -> Mapping[str, str]: ...
    @property
    def operator_class(self) -> str: ...
    def render(self, schedule: Schedule) -> Emitted:
        """The kernel under ``schedule``, which must be complete. Pure."""
        ...


class Lowering(Protocol):
    async def lower(self, operator: OperatorSpec, target: Target) -> Lowered:
        """Plan ``operator`` for ``target``.

        Raises:
            Unsupported: naming the ATen node that cannot be captured or lowered.
        """
        ...
