"""What an owner tells about its searches, in metrics and log lines."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from shared import metrics
from shared.clock import SECOND_NS, Clock
from shared.errors import Conflict
from shared.events import (
    Envelope,
    EvaluationRequested,
    Event,
    SearchCancelled,
    SearchFinished,
    SearchForked,
    SearchPaused,
    SearchResumed,
    SearchStarted,
)

_PHASES = {
    SearchStarted: "started",
    SearchForked: "forked",
    SearchPaused: "paused",
    SearchResumed: "resumed",
    SearchCancelled: "cancelled",
    SearchFinished: "finished",
}


log = logging.getLogger(__name__)


@contextmanager
def appending(clock: Clock) -> Iterator[None]:
    """Times the journal append in the block, and counts one that another owner was faster with."""
    began_ns = clock.monotonic_ns()
    try:
        yield
    except Conflict:
        metrics.JOURNAL_CONFLICTS.inc()
        raise
    metrics.JOURNAL_SECONDS.observe((clock.monotonic_ns() - began_ns) / SECOND_NS)


def recorded(envelope: Envelope, commands: Iterable[Envelope]) -> None:
    """Tells what one journal entry means for its search: once per entry, so once per search and phase."""
    for event in (envelope.event, *(command.event for command in commands)):
        if phase := _PHASES.get(type(event)):
            metrics.SEARCHES.inc(phase)
            log.info("search %s %s%s", envelope.correlation_id, phase, _how(event))
        if isinstance(event, SearchFinished):
            metrics.OUTCOMES.inc(event.outcome)


def _how(event: Event) -> str:
    match event:
        case SearchFinished():
            return f": {event.outcome} ({event.reason})"
        case SearchPaused():
            return f": {event.code}: {event.detail}"
        case _:
            return ""


def published(command: Envelope) -> None:
    """Counts what workers are asked for, every time it is asked."""
    if isinstance(command.event, EvaluationRequested):
        metrics.REQUESTED.inc(command.event.chip)
