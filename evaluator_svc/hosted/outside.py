"""What a hosted candidate works outside of its calls, in sum over its life.

All of it is charged to the call beside it, so nobody gains by it; more than any accident explains is an accusation.
"""

from __future__ import annotations

from dataclasses import dataclass

from evaluator_svc.runner import ending
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.process import HIDDEN_EACH_NS, HIDDEN_NS, HIDDEN_SHARE

WAKING_CPU_NS = 150_000
"""Processor time for an empty command to a process that was frozen; all above it is charged to the call."""
EARLY_NS = 20_000_000
"""As ``HIDDEN_NS`` is for a native kernel: a process that was just forked copies pages when it first runs, which took
2 ms on a busy machine."""


@dataclass(slots=True)
class Outside:
    """Ns of a processor before commands, beyond what waking takes; of all work; of a device after answers."""

    early: int = 0
    worked: int = 0
    late: int = 0
    commands: int = 0

    def command(self, *, early: int, worked: int, late: int) -> None:
        """Add those of one command."""
        self.early += early
        self.worked += worked
        self.late += late
        self.commands += 1

    def began_early(self) -> RunFailure | None:
        return ending.began_early(self.early) if self.early > self._most(EARLY_NS) else None

    def went_on(self) -> RunFailure | None:
        return ending.went_on(self.late) if self.late > self._most(HIDDEN_NS) else None

    def _most(self, once_ns: int) -> float:
        return once_ns + HIDDEN_EACH_NS * self.commands + HIDDEN_SHARE * self.worked


def early_ns(frozen: int, woken: int) -> int:
    """Of processor time read before a process was woken and after, what waking does not explain."""
    return max(0, woken - frozen - WAKING_CPU_NS)
