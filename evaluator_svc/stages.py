"""Where an evaluation's own time goes, as ``StageTimes`` of the event."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shared.events import StageTimes


class Stopwatch:
    """Spans by stage; ``framework`` is what none of them explains."""

    def __init__(self, entered: Callable[[str], None] = lambda _: None) -> None:
        """``entered`` is told of every stage as it begins."""
        self._entered = entered
        self._begin = time.monotonic_ns()
        self._spent: Counter[str] = Counter()
        self.current = "framework"
        """The stage that it is in now."""

    @contextmanager
    def span(self, stage: str) -> Iterator[None]:
        """Count the block under ``stage``: build, correctness, timing, profile or wait. Spans do not nest."""
        begin = time.monotonic_ns()
        self.current = stage
        self._entered(stage)
        try:
            yield
        finally:
            self.current = "framework"
            self._spent[stage] += time.monotonic_ns() - begin

    def stages(self) -> StageTimes:
        total = time.monotonic_ns() - self._begin
        spent = {f"{stage}_ns": ns for stage, ns in self._spent.items()}
        return StageTimes(**spent, framework_ns=max(0, total - sum(spent.values())))
