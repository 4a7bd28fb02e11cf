"""Where an evaluation's own time goes, as ``StageTimes`` of the event."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from shared.events import StageTimes


class Stopwatch:
    """Spans by stage; ``framework`` is what none of them explains."""

    def __init__(self) -> None:
        self._begin = time.monotonic_ns()
        self._spent: Counter[str] = Counter()

    @contextmanager
    def span(self, stage: str) -> Iterator[None]:
        """Count the block under ``stage``: build, correctness, timing, profile or wait. Spans do not nest."""
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            self._spent[stage] += time.monotonic_ns() - begin

    def stages(self) -> StageTimes:
        total = time.monotonic_ns() - self._begin
        spent = {f"{stage}_ns": ns for stage, ns in self._spent.items()}
        return StageTimes(**spent, framework_ns=max(0, total - sum(spent.values())))
