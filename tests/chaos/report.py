"""The result of chaos runs, for people (pure)."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence

from tests.chaos.faults import Fault
from tests.chaos.play import Run
from tests.chaos.wishes import Wish, wishes


def differing(run: Run, calm: Run, wanted: Sequence[Wish]) -> list[str]:
    """Sequential searches whose tree is not that of the undisturbed run."""
    return [
        f"search {one.search_id} ({wish.policy}): its tree is another one{_where(one.shape, other.shape)}"
        for one, other, wish in zip(run.audits, calm.audits, wanted, strict=True)
        if wish.sequential and one.shape != other.shape
    ]


def _where(left: Sequence[object], right: Sequence[object]) -> str:
    for number, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return f", from {number} on: {one} and not {other}"
    return f": {len(left)} and not {len(right)} parts"


def markdown(
    rows: Sequence[tuple[int, Run, Run]], searches: int, evaluations: int, workers: int, median_s: float
) -> str:
    """The whole page."""
    return "\n".join(_lines(rows, searches, evaluations, workers, median_s)) + "\n"


def _lines(
    rows: Sequence[tuple[int, Run, Run]], searches: int, evaluations: int, workers: int, median_s: float
) -> Iterator[str]:
    seeds = " ".join(f"--seed {seed}" for seed, _, _ in rows)
    yield "# Chaos"
    yield ""
    yield f"`python -m tests.chaos.run {seeds} --searches {searches} --evaluations {evaluations} --workers {workers}`"
    yield ""
    yield (
        f"{searches} searches of {evaluations} evaluations on the simulated chip ({median_s:g} s each in the median), "
        f"{workers} evaluators, one process of every other service, on {os.cpu_count()} cores, "
        f"Python {platform.python_version()}."
    )
    for seed, run, calm in rows:
        wanted = wishes(searches, evaluations, seed)
        sequential = sum(wish.sequential for wish in wanted)
        same = sequential - len(differing(run, calm, wanted))
        yield ""
        yield f"## Seed {seed}"
        yield ""
        yield "| at | fault | process | searches in progress | ready again | searches go on |"
        yield "|---:|---|---|---:|---:|---:|"
        for injury in run.injuries:
            yield (
                f"| {injury.at_s:.0f} s | {injury.fault.kind} | {_names(injury.fault)} | {injury.unfinished} "
                f"| {injury.ready_s:.1f} s | {injury.recovered_s:.1f} s |"
            )
        yield ""
        yield "| | disturbed | undisturbed |"
        yield "|---|---:|---:|"
        yield f"| seconds until the last search ended | {run.seconds:.0f} | {calm.seconds:.0f} |"
        yield f"| searches ended, log verified | {_good(run)} of {searches} | {_good(calm)} of {searches} |"
        yield f"| facts journalled | {_facts(run)} | {_facts(calm)} |"
        for status in sorted(run.verdicts | calm.verdicts):
            yield f"| verdicts {status} | {run.verdicts[status]} | {calm.verdicts[status]} |"
        yield f"| late results fenced | {run.fenced} | {calm.fenced} |"
        yield f"| processes started again | {sum(run.restarts.values())} | {sum(calm.restarts.values())} |"
        yield f"| sequential searches with the undisturbed run's tree | {same} of {sequential} | |"


def _names(fault: Fault) -> str:
    return " ".join(f"`{name}`" for name in (fault.victim, fault.beside) if name)


def _good(run: Run) -> int:
    return sum(not audit.problems for audit in run.audits)


def _facts(run: Run) -> int:
    return sum(audit.entries for audit in run.audits)
