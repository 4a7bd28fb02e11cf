"""What the service keeps, as JSON documents and back (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from knowledge_svc.observations import Measured, Observation, SkillContext, Trial
from shared.events import Bound, SkillDistilled, SkillStatus, Speedup, Status

Json = dict[str, object]


def to_json(record: Trial | Measured | Observation | SkillContext | SkillDistilled) -> Json:
    """Fields by name; the enumerations are strings, tuples become lists in JSON."""
    return asdict(record)


def trial(data: Mapping[str, Any]) -> Trial:
    return Trial(**data)


def measured(data: Mapping[str, Any]) -> Measured:
    speedups = tuple(Speedup(**speedup) for speedup in data["speedups"])
    enums = {"status": Status(data["status"]), "bound": Bound(data["bound"])}
    return Measured(**{**data, **enums, "speedups": speedups})


def observation(data: Mapping[str, Any]) -> Observation:
    return Observation(**{**data, "status": Status(data["status"])})


def skill(data: Mapping[str, Any]) -> SkillDistilled:
    enums = {"status": SkillStatus(data["status"]), "bound": Bound(data["bound"])}
    evidence = {name: tuple(data[name]) for name in ("evidence_for", "evidence_against")}
    return SkillDistilled(**{**data, **enums, **evidence})
