"""The ledger of one evaluation: every call, every clock, every seed and every check, as data (pure).

It is written while the evaluation runs, kept as a blob under ``Evaluation.ledger_hash`` and printed by
``kernelevolve evaluate --audit``, so that a cheat found later can be looked for in earlier results. Nothing in it was
ever in a candidate's reach; seeds are in it because the evaluation is over when anybody reads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

FORMAT = "kernelevolve-ledger/1"


class Stage(StrEnum):
    """What a call was made for."""

    CHECK = "check"
    SHAPE = "held-out shape"
    WARM_UP = "warm-up"
    FRESH = "fresh"
    """One call on values that this process has not seen."""
    BLOCK = "block"
    COLD = "cold"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``calls`` calls of one contestant made in one go. Times in ns for all of them together; None: that clock was
    not there.

    ``controller_ns`` is the controller's monotonic clock, ``runner_ns`` the runner's own, ``cpu_ns`` processor time
    as the kernel accounts it, ``device_ns`` device events, ``profiler_ns`` the sum of the kernels in a trace.
    """

    stage: Stage
    process: int
    """Counts the fresh processes of this evaluation."""
    contestant: str
    case: str
    calls: int
    controller_ns: int
    runner_ns: int | None = None
    cpu_ns: int | None = None
    device_ns: int | None = None
    profiler_ns: int | None = None
    first_use: bool = False
    """The process saw the case's values for the first time."""
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at: which layer, on what, and what came of it."""

    layer: str
    subject: str
    outcome: str


@dataclass(kw_only=True)
class Ledger:
    """Grows while an evaluation runs. ``seeds`` maps a case to the secret it was drawn under."""

    calls: list[Call] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    seeds: dict[str, int] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    """Hashes, versions, sandbox and trust levels, processes."""

    def call(self, call: Call) -> None:
        self.calls.append(call)

    def check(self, layer: str, subject: str, outcome: str) -> None:
        self.checks.append(Check(layer=layer, subject=subject, outcome=outcome))

    def plain(self) -> dict[str, Any]:
        """As JSON has it, in the order in which things happened."""
        return {
            "format": FORMAT,
            "facts": self.facts,
            "seeds": self.seeds,
            "checks": [_flat(check) for check in self.checks],
            "calls": [_flat(call) for call in self.calls],
        }

    def encoded(self) -> bytes:
        """The blob's bytes: equal ledgers are equal blobs."""
        return json.dumps(self.plain(), sort_keys=True, separators=(",", ":")).encode()


def _flat(entry: Call | Check) -> dict[str, Any]:
    """``dataclasses.asdict`` of what holds nothing nested: that copies deeply, and there are hundreds of calls."""
    return {one.name: getattr(entry, one.name) for one in fields(entry)}
