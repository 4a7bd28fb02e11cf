"""Claims about moves, and their end (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.events.evaluation import Bound


class SkillStatus(StrEnum):
    HYPOTHESIS = "hypothesis"
    SUPPORTED = "supported"
    RETRACTED = "retracted"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDistilled:
    """A claim and its evidence: *in this context, this move multiplies time by* ``ratio_ppm``.

    ``ratio_ppm`` below 1,000,000 is faster. ``low``/``high`` are the posterior's 90 % interval.
    """

    skill_id: str
    move: str
    operator_class: str
    chip: str
    language: str
    bound: Bound
    status: SkillStatus
    ratio_ppm: int
    low_ppm: int
    high_ppm: int
    evidence_for: tuple[str, ...] = ()
    evidence_against: tuple[str, ...] = ()
    revision: int = 1
    statement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRetired:
    skill_id: str
    reason: str
    evidence_against: tuple[str, ...] = ()
    revision: int = 1
