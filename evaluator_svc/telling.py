"""What whoever asked for an evaluation is told while it runs: stages as they begin, and how each of them ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evaluator_svc.stages import Stopwatch
from shared.events import Entry, Evaluation, Status

QUEUED, ADMISSION = "queued", "admission"
OK = "ok"
_NAMES = {"wait": QUEUED}
"""Spans of the stopwatch that are told under another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A stage that is over. ``outcome``: ok, or the status that the evaluation ended with in it."""

    stage: str
    elapsed_ns: int
    outcome: str
    facts: tuple[Entry, ...] = ()


class Told:
    """Turns a stopwatch's spans into updates. Spans of one stage in a row are one: a stage ends when another begins."""

    def __init__(self, tell: Callable[[str | Ended], None]) -> None:
        self._tell = tell
        self._stage, self._elapsed_ns = "", 0
        self._facts: dict[str, str] = {}

    def stopwatch(self) -> Stopwatch:
        """One that tells of its stages here."""
        return Stopwatch(lambda stage: self.enter(_NAMES.get(stage, stage)), self._left, self._noted)

    def enter(self, stage: str) -> None:
        """``stage`` begins, so the one before it went well."""
        if stage != self._stage:
            self._end(OK)
            self._stage = stage
            self._tell(stage)

    def finish(self, evaluation: Evaluation) -> None:
        """The verdict is there: it says how the last stage ended."""
        self._end(OK if evaluation.status is Status.PASSED else evaluation.status.value)

    def _left(self, _: str, elapsed_ns: int) -> None:
        self._elapsed_ns += elapsed_ns

    def _noted(self, name: str, value: str) -> None:
        self._facts[name] = value

    def _end(self, outcome: str) -> None:
        if self._stage not in ("", QUEUED):
            facts = tuple(Entry(name=name, value=value) for name, value in self._facts.items())
            self._tell(Ended(stage=self._stage, elapsed_ns=self._elapsed_ns, outcome=outcome, facts=facts))
        self._stage, self._elapsed_ns, self._facts = "", 0, {}
