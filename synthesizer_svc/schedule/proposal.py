"""What a proposal looks at and what it is: the data shared by moves, drafts, crossover and repair (pure)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared import ids
from shared.events import NOT_THE_KERNELS_FAULT, PPM, Bound, Entry, Evaluation, Move, Roofline, SkillDistilled, Status
from synthesizer_svc.schedule.schedule import Decision, Schedule, Space, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A kernel to start from. ``evaluation`` is None while nothing was measured."""

    candidate_id: str
    schedule: Schedule
    evaluation: Evaluation | None = None

    @property
    def failed(self) -> bool:
        """The kernel itself is broken, as far as its evaluation says: to be repaired, not improved."""
        if self.evaluation is None:
            return False
        return self.evaluation.status is not Status.PASSED and self.evaluation.status not in NOT_THE_KERNELS_FAULT

    @property
    def bound(self) -> Bound:
        return self.evaluation.diagnosis.bound if self.evaluation else Bound.UNKNOWN

    @property
    def roofline(self) -> Roofline:
        return self.evaluation.roofline if self.evaluation else Roofline()

    @property
    def ratio_ppm(self) -> int:
        """Speedup over the faster baseline in parts per million; 0 when there is none."""
        speedup = self.evaluation.speedup() if self.evaluation else None
        return speedup.ratio_ppm if speedup else 0

    @property
    def worth(self) -> tuple[int, bool, int]:
        """Sorts better kernels higher: by speedup, or, on a chip without a clock, by what they do not cost."""
        estimate = self.evaluation.estimate if self.evaluation else None
        return self.ratio_ppm, estimate is not None, -estimate.cost if estimate else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything a proposal may depend on; equal situations give equal proposals.

    ``kinds`` maps a decision's group to its operator class (``pointwise``, ``reduction`` …). ``siblings`` were tried
    beside the new candidates, ``negative`` failed. Random streams hang on ``seed`` and nothing else: equal ones
    propose equal schedules.
    """

    space: Space
    kinds: Mapping[str, str]
    chip: str
    language: str
    seed: int
    parents: tuple[Parent, ...] = ()
    siblings: tuple[Schedule, ...] = ()
    negative: tuple[Schedule, ...] = ()
    skills: tuple[SkillDistilled, ...] = ()

    def kind(self, decision: Decision) -> str:
        return self.kinds.get(decision.group, "any")

    def stream(self, purpose: str) -> random.Random:
        return ids.stream(self.seed, purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A schedule to try. ``score`` is an expected log-speedup over the parent, drawn, not averaged."""

    schedule: Schedule
    move: Move
    score: float = 0.0
    skill_ids: tuple[str, ...] = field(default=())


def move_name(kind: str, decision: Decision, value: Value) -> str:
    """``<operator class>:<decision>=<value>``: without the group's instance, so that skills carry over."""
    return f"{kind}:{decision.name}={value}"


def standing(parent: Parent) -> str:
    """One clause on where the parent stands, quoting its numbers."""
    roofline = parent.roofline
    if parent.evaluation is None:
        return "parent not measured"
    if parent.failed:
        reason = f": {parent.evaluation.why}" if parent.evaluation.why else ""
        return f"parent failed with {parent.evaluation.status}{reason[:160]}"
    text = "bound unknown" if parent.bound is Bound.UNKNOWN else f"{parent.bound.value}-bound"
    if roofline.fraction_ppm:
        text += f" at {roofline.fraction_ppm * 100 / PPM:.0f} % of the speed of light"
    if parent.ratio_ppm:
        text += f", {parent.ratio_ppm / PPM:.2f}x the baseline"
    if estimate := parent.evaluation.estimate:
        text += f", {estimate.cost:,} {estimate.unit} a call ({estimate.basis.value})"
    return f"parent is {text}"


def changes(parent: Schedule, child: Schedule) -> tuple[tuple[str, Value], ...]:
    """``(key, new value)`` of every decision in which ``child`` differs from ``parent``, sorted by key."""
    before = dict(parent.choices)
    return tuple((key, value) for key, value in child.choices if before.get(key) != value)


def change_entries(kind: str, decision: Decision, before: Value, after: Value) -> tuple[Entry, ...]:
    """Parameters of a one-decision move: ``operator_class``, ``group``, ``decision``, ``from`` and ``to``."""
    return (
        Entry(name="operator_class", value=kind),
        Entry(name="group", value=decision.group),
        Entry(name="decision", value=decision.name),
        Entry(name="from", value=str(before)),
        Entry(name="to", value=str(after)),
    )
