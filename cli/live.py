"""The live view of a running search: a panel on a terminal, plain lines anywhere else. Everything goes to stderr."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from cli import estimates
from cli.legible import legible
from cli.progress import RETRIED, Progress, fold, less_ppm, ratio
from shared.events import (
    CandidateProduced,
    CandidateRejected,
    Estimate,
    EvaluationCompleted,
    Event,
    Purpose,
    SearchFinished,
    SearchPaused,
    Status,
)
from shared.usage import by_a_model, in_words
from shared.writers import INSTEAD_OF, filled_in

NS_PER_S = 1_000_000_000
LINES_SHOWN = 8


class LiveView:
    """Feed it facts; it draws them. Use as a context manager."""

    def __init__(self, console: Console, *, title: str, quiet: bool = False) -> None:
        self._console, self._title, self._quiet = console, title, quiet
        self.progress = Progress()
        self._recent: list[str] = []
        self._bar = Bar(TextColumn("{task.description}"), BarColumn(bar_width=40), TextColumn("{task.fields[note]}"))
        self._task = self._bar.add_task("evaluations", total=1, note="starting")
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live and not self._quiet:
            self._live.start()
            self._draw()
        elif not self._quiet:
            self._console.print(self._title, highlight=False, markup=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live and self._live.is_started:
            self._live.stop()

    def note(self, line: str) -> None:
        """Something worth a line that is no fact of the search, e.g. "calibrating"."""
        self._say(line)

    def show(self, event: Event) -> None:
        """Take one fact in."""
        before = self.progress
        self.progress = fold(before, event)
        line = describe(event, before, self.progress)
        if line:
            self._say(line)
        elif self._live and self._live.is_started:
            self._draw()

    def _say(self, line: str) -> None:
        if self._quiet:
            return
        line = legible(line)
        self._recent = [*self._recent[-LINES_SHOWN + 1 :], line]
        if self._live and self._live.is_started:
            self._draw()
        else:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _draw(self) -> None:
        if not self._live:
            return
        state = self.progress
        eta = "" if state.eta_ns is None else f"  ETA {state.eta_ns // NS_PER_S} s"
        self._bar.update(
            self._task,
            total=max(1, state.budget),
            completed=state.evaluated,
            note=f"{state.evaluated}/{state.budget}{eta}",
        )
        table = Table.grid(padding=(0, 2))
        best = _best(state)
        table.add_row("best", Text(best or "-", style="bold green" if best else "dim"))
        table.add_row("tree", f"{state.produced} nodes, {state.open} in flight, {state.pruned} pruned")
        if by_a_model(state.spent):
            table.add_row("models", in_words(state.spent))
        table.add_row("statuses", ", ".join(f"{k} {v}" for k, v in sorted(state.statuses.items())) or "-")
        lines = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self._recent]
        self._live.update(Group(Text(self._title, style="bold"), self._bar, table, *lines))


def _best(state: Progress) -> str:
    if state.first_draft and state.cheapest:
        return f"{_cost(state.first_draft, state.cheapest)}  ({state.best_move})"
    return f"{ratio(state.best.ratio_ppm)} vs {state.best.baseline}  ({state.best_move})" if state.best else ""


def _cost(first_draft: Estimate, found: Estimate) -> str:
    """A cost and how it compares, labelled with what it rests on."""
    ppm = less_ppm(first_draft, found)
    compared = estimates.against(ppm, found.basis.value) if ppm else "not compared"
    return f"{estimates.amount(found.cost, found.unit)}, {compared}"


def describe(event: Event, before: Progress, after: Progress) -> str:
    """One line for a fact, or "" when it is not worth one."""
    match event:
        case EvaluationCompleted():
            return _describe_evaluation(event, before, after)
        case CandidateRejected() if event.code != "exhausted":
            return f"  rejected before evaluation: {event.code} {event.detail}".rstrip()
        case SearchFinished():
            return f"finished: {event.outcome} ({event.reason}) after {event.evaluations} evaluations"
        case SearchPaused():
            return f"paused: {event.code}: {event.detail}"
        case CandidateProduced() if filled_in(event.move):
            reason = next(entry.value for entry in event.move.parameters if entry.name == INSTEAD_OF)
            return f"  a schedule instead of a model: {reason}"
        case _:
            return ""


def _describe_evaluation(event: EvaluationCompleted, before: Progress, after: Progress) -> str:
    evaluation = event.evaluation
    move = before.moves.get(event.candidate_id, "")
    again = "  [checked again]" if evaluation.estimate is not None else "  [re-measured]"
    head = f"  [{after.evaluated}/{after.budget}]" if event.purpose is Purpose.SEARCH else again
    if evaluation.status in RETRIED:
        return f"{head} {evaluation.status.value.lower()}, measured again: {move}"
    if evaluation.status is not Status.PASSED:
        why = "".join(evaluation.why.splitlines()[:1])[:100]
        return f"{head} {evaluation.status.value} {move}: {why}"
    mark = "  <- best" if (before.best, before.cheapest) != (after.best, after.cheapest) else ""
    if evaluation.estimate is not None:
        return f"{head} {_cost(after.first_draft or evaluation.estimate, evaluation.estimate)}  {move}{mark}"
    speedup = evaluation.speedup(after.baseline)
    if speedup is None:
        return f"{head} PASSED {move} (not timed)"
    interval = f"{ratio(speedup.low_ppm)}..{ratio(speedup.high_ppm)}"
    return f"{head} {ratio(speedup.ratio_ppm)} ({interval}) vs {speedup.baseline}  {move}{mark}"
