"""Whether a worker may judge: what it knows of its own health, and when it tries itself again.

A worker takes no work before its first probe was good, nor after one that was not, until a later one is. Failures of
ours in a row, over more than one operator, are suspicion: it tries itself at once, and when that finds nothing but the
failures go on, it pauses all the same.
"""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum

from evaluator_svc.canary import Finding
from evaluator_svc.settings import CanaryLimits
from shared.events import Evaluation, EvaluationRequested, Status

log = logging.getLogger(__name__)


class Standing(StrEnum):
    UNTRIED = "untried"
    """Before the first probe."""
    WORKING = "working"
    QUARANTINED = "quarantined"
    """Takes no work, and tries itself again after a back-off."""
    OUT = "out"
    """Failed too often in a row: only a new start, by somebody who has looked, brings it back."""


class Quarantine:
    """See the module. Time is handed in, in seconds that only grow."""

    def __init__(self, limits: CanaryLimits) -> None:
        self._limits = limits
        self.standing, self.reason = Standing.UNTRIED, "not tried yet"
        self.changed = asyncio.Event()
        """Set whenever the standing changes; whoever waits for it clears it."""
        self.admitted = asyncio.Event()
        """Set while work may be taken."""
        self.wake = asyncio.Event()
        """Set when a verdict has made a probe due."""
        self._failed_probes = 0
        self._failures: list[str] = []
        """Operators of the failures of ours since the last evaluation that was none."""
        self._suspected = False
        """A good probe followed on failures, and none of ours has succeeded since."""
        self._evaluations = 0
        """Verdicts since the last good probe."""
        self._next_s = 0.0

    @property
    def working(self) -> bool:
        return self.standing is Standing.WORKING

    def due(self, now_s: float) -> bool:
        """Whether to try now: the back-off or the interval has run out, or enough was judged since."""
        if self.standing is Standing.OUT:
            return False
        return now_s >= self._next_s or (self.working and self._evaluations >= self._limits.every_evaluations)

    def wait_s(self, now_s: float) -> float:
        """How long until time alone makes it due."""
        return max(0.0, self._next_s - now_s)

    def answered(self, request: EvaluationRequested, evaluation: Evaluation, now_s: float) -> None:
        """Take note of a verdict; ``evaluation`` is as it was made, not remembered."""
        self._evaluations += 1
        if self._evaluations >= self._limits.every_evaluations:
            self.wake.set()
        if evaluation.status is not Status.INFRASTRUCTURE:
            self._failures, self._suspected, self._failed_probes = [], False, 0
            return
        self._failures.append(request.operator.source_hash)
        enough = len(self._failures) >= self._limits.failures_in_a_row
        if not enough or not self.working:
            return
        if self._suspected and len(set(self._failures)) > 1:
            self._pause(f"{len(self._failures)} evaluations in a row failed on this worker", now_s)
        elif not self._suspected:
            self._next_s = now_s
            self.wake.set()

    def probed(self, finding: Finding, now_s: float, *, thorough: bool) -> None:
        """Take note of a probe of the worker by itself."""
        if finding.healthy:
            self._suspected = len(self._failures) >= self._limits.failures_in_a_row
            self._failed_probes = self._failed_probes if self._suspected else 0
            self._evaluations = 0
            self._next_s = now_s + (self._limits.every_s if thorough else self._limits.clock_after_s)
            self._stand(Standing.WORKING, "")
            return
        self._pause(finding.fault, now_s)

    def _pause(self, why: str, now_s: float) -> None:
        self._failed_probes += 1
        out = self._failed_probes >= self._limits.probes_max
        self._next_s = now_s + min(
            self._limits.back_off_most_s, self._limits.back_off_s * 2.0 ** (self._failed_probes - 1)
        )
        log.error("this worker takes no work%s: %s", "" if out else f" for {self.wait_s(now_s):.0f} s", why)
        if self._evaluations:
            log.error("%d verdicts were given since it was last found sound", self._evaluations)
        self._stand(Standing.OUT if out else Standing.QUARANTINED, why)

    def _stand(self, standing: Standing, reason: str) -> None:
        if (standing, reason) == (self.standing, self.reason):
            return
        self.standing, self.reason = standing, reason
        (self.admitted.set if self.working else self.admitted.clear)()
        self.changed.set()
