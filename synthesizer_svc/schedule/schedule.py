"""Schedules: the choices that turn a plan into one particular kernel (pure).

A plan says *what* is computed, in groups of fused loops. A schedule says *how*: one value for every decision of every
group. Decisions are data, so moves, crossover and skills need to know none of them by name, and an emitter for
another language brings its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from shared import ids
from shared.events import Bound

Value = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One open choice of one group. ``values`` are ordered where order means something (tile sizes, unrolls).

    ``pays_when`` lists what a kernel must be bound by for a change of this decision to be worth trying first; empty
    means "any". ``why`` is one line for people: what the decision trades against what.
    """

    group: str
    name: str
    values: tuple[Value, ...]
    default: Value
    pays_when: tuple[Bound, ...] = ()
    why: str = ""

    @property
    def key(self) -> str:
        return f"{self.group}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Values by decision key, sorted by key. Keys a space does not know are kept out by ``Space.complete``."""

    choices: tuple[tuple[str, Value], ...] = ()

    def get(self, key: str) -> Value | None:
        return dict(self.choices).get(key)

    def with_choice(self, key: str, value: Value) -> Schedule:
        merged = dict(self.choices) | {key: value}
        return Schedule(choices=tuple(sorted(merged.items())))

    def to_json(self) -> bytes:
        """Canonical JSON: the blob that ``KernelRef.schedule_hash`` names."""
        return ids.canonical_json(dict(self.choices))

    @classmethod
    def from_json(cls, data: bytes) -> Schedule:
        return cls(choices=tuple(sorted(json.loads(data).items())))


def choices_of(schedule: Schedule, group: str) -> dict[str, Value]:
    """The choices of one group, by decision name."""
    prefix = f"{group}."
    return {key.removeprefix(prefix): value for key, value in schedule.choices if key.startswith(prefix)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All decisions of a plan on a chip and language."""

    decisions: tuple[Decision, ...]

    def decision(self, key: str) -> Decision | None:
        return next((d for d in self.decisions if d.key == key), None)

    def default(self) -> Schedule:
        return Schedule(choices=tuple(sorted((d.key, d.default) for d in self.decisions)))

    def complete(self, schedule: Schedule) -> Schedule:
        """``schedule`` made legal: unknown keys dropped, missing or illegal values replaced by the default."""
        given = dict(schedule.choices)
        chosen = {d.key: given[d.key] if given.get(d.key) in d.values else d.default for d in self.decisions}
        return Schedule(choices=tuple(sorted(chosen.items())))
