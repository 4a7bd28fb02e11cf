"""Where an evaluation's own time goes, as ``StageTimes`` of the event."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shared.events import StageTimes


class Stopwatch:
    """Spans by stage; ``framework`` is what none of them explains."""

    def __init__(
        self,
        entered: Callable[[str], None] = lambda _: None,
        left: Callable[[str, int], None] = lambda _, __: None,
        noted: Callable[[str, str], None] = lambda _, __: None,
    ) -> None:
        """``entered`` is told of each stage as it begins, ``left`` as it ends and its ns, ``noted`` of facts of it."""
        self._entered, self._left, self._noted = entered, left, noted
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
            spent = time.monotonic_ns() - begin
            self._spent[stage] += spent
            self._left(stage, spent)

    def note(self, name: str, value: object) -> None:
        """A fact of the stage it is in, for whoever follows."""
        self._noted(name, str(value))

    def stages(self) -> StageTimes:
        total = time.monotonic_ns() - self._begin
        spent = {f"{stage}_ns": ns for stage, ns in self._spent.items()}
        return StageTimes(**spent, framework_ns=max(0, total - sum(spent.values())))
