"""The result of chaos runs, for people (pure)."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Iterator, Sequence

from tests.chaos.faults import SEARCHES, Fault, Kind
from tests.chaos.play import Run
from tests.chaos.rolling import Rolled
from tests.chaos.system import ENVIRONMENT, HANG_LIMIT_S
from tests.chaos.trial import Trial

INTRODUCTION = """\
Searches run on a local cluster with the simulated chip while processes are killed, frozen and hung, and servers are
away, silent or emptied, in an order and at moments that a seed chooses. Two thirds of the searches are sequential: one
candidate is on its way at a time, so that no order of arrival can change the tree, which must be the one of the same
search in a second, undisturbed cluster: candidates, parents, kernels, verdicts, scores and the winner. The others have
up to six candidates on their way. Of every search it is checked that it ends, that its journal verifies by replay, that
the log recomputed from the bus equals the journal, that every evaluation it asked for was answered and recorded once,
and that as many were charged as candidates got a verdict. Knowledge is frozen: it learns from whichever search is
faster.

- *ready again*: from the fault until the process answers. *All go on*: until every unfinished search has a new fact.
- A frozen worker is stopped for twice the time that its claims live, then goes on: its late results must be fenced.
- A kernel that hangs its worker must be given up within {limit:.0f} s: three workers try it, each for its deadline, the
  grace and the life of a claim, and it may wait for a slot each time.
- The broker keeps nothing: each time it was killed or away, it came back empty.
"""


def markdown(command: str, trials: Sequence[Trial], rolled: Rolled | None) -> str:
    """The whole page."""
    return "\n".join(_lines(command, trials, rolled)) + "\n"


def _lines(command: str, trials: Sequence[Trial], rolled: Rolled | None) -> Iterator[str]:
    yield "# Chaos"
    yield ""
    yield INTRODUCTION.format(limit=HANG_LIMIT_S)
    yield f"`{command}`"
    yield ""
    yield f"{_machine()}; {SEARCHES} processes of the search service, one of synthesizer and of knowledge."
    yield from textwrap.wrap("Settings: " + ", ".join(f"`{name}={value}`" for name, value in ENVIRONMENT.items()), 120)
    for trial in trials:
        yield from _trial(trial)
    if rolled is not None:
        yield from _rolled(rolled)


def _trial(trial: Trial) -> Iterator[str]:
    run, calm, searches = trial.disturbed, trial.calm, len(trial.wishes)
    yield from ("", f"## Seed {trial.seed}", "")
    yield "| at | fault | process | unfinished searches | ready again | all go on |"
    yield "|---:|---|---|---:|---:|---:|"
    for injury in run.injuries:
        again = f"{injury.ready_s:.1f} s" if injury.fault.kind is not Kind.HANG else f"given up, {injury.ready_s:.1f} s"
        yield (
            f"| {injury.at_s:.0f} s | {injury.fault.kind} | {_names(injury.fault)} | {injury.unfinished} "
            f"| {again} | {injury.recovered_s:.1f} s |"
        )
    yield from ("", "| | disturbed | undisturbed |", "|---|---:|---:|")
    yield f"| until faults and searches were over | {run.seconds:.0f} s | {calm.seconds:.0f} s |"
    yield f"| searches in order | {_good(run)} of {searches} | {_good(calm)} of {searches} |"
    yield f"| facts journalled | {_facts(run)} | {_facts(calm)} |"
    for status in sorted(run.verdicts | calm.verdicts):
        yield f"| verdicts {status} | {run.verdicts[status]} | {calm.verdicts[status]} |"
    yield f"| late results fenced | {run.fenced} | {calm.fenced} |"
    yield f"| processes started again | {sum(run.restarts.values())} | {sum(calm.restarts.values())} |"
    same = trial.sequential - len(trial.different)
    yield f"| sequential searches with the undisturbed tree | {same} of {trial.sequential} | |"
    if trial.problems:
        yield from ("", "Wrong:", "", *(f"- {problem}" for problem in trial.problems))


def _rolled(rolled: Rolled) -> Iterator[str]:
    calls = rolled.calls
    yield from ("", "## Rolling restart", "")
    yield "Every service is drained and started again, one after the other, while searches run and clients call."
    yield from ("", "| process | from the order to stop until it answers |", "|---|---:|")
    for name, seconds in rolled.seconds.items():
        yield f"| `{name}` | {seconds:.1f} s |"
    made = ", ".join(f"{count} {name}" for name, count in calls.made.items())
    yield from ("", f"Calls: {made}; {len(calls.failed)} failed; the longest took {calls.longest_s:.1f} s.")
    yield f"Watches of {rolled.watches} searches from start to end: {len(rolled.missed)} missed or repeated something."
    yield from (f"- {failure}" for failure in (*calls.failed, *rolled.missed))


def _machine() -> str:
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"


def _names(fault: Fault) -> str:
    return ", ".join(f"`{name}`" for name in (fault.victim, fault.beside) if name)


def _good(run: Run) -> int:
    return sum(not audit.problems for audit in run.audits)


def _facts(run: Run) -> int:
    return sum(audit.entries for audit in run.audits)
