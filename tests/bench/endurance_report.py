"""What a row of evaluations left behind and cost: counts, parts of a time, one page (pure)."""

from __future__ import annotations

import platform
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from shared.events import Status
from shared.machine import processor
from tests.bench.census import MEMORY, Sample, slope

OVERHEAD_MS = 60.0
"""Aimed at, for the median."""
LEFT = """Counted after a warm-up of every kernel once, and after the last evaluation. The slope is a least-squares fit
over the samples of the second half, per 1 000 evaluations. What is meant to grow, the store's database and the cache
of artefacts, lies on disk; the database's page cache in memory, of 2 MB, was filled before the first sample."""
COSTS = """Overhead is the wall time less the build, less waiting for a turn, less the time inside calls of the kernel
and of the baselines by the controller's clock (the ledger's calls). It holds starting and ending boxes, fresh values
and their answers, filling and poisoning buffers, judging, statistics, diagnosis and the store. A call that never came
back is not in the ledger: its limit counts as overhead. In the last column the whole timing stage counts as measuring,
with what is done between timed calls (fresh values, poison, and the verification of every answer)."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """One evaluation, times in ms. ``inside``: in calls of the kernel and of baselines, by the controller's clock."""

    kernel: str
    hostile: bool
    status: Status
    wall: float
    build: float
    wait: float
    profile: float
    correctness: float
    timing: float
    framework: float
    checking: float
    """Inside calls of the correctness stage."""
    measuring: float
    """Inside calls of the timing stage."""

    @property
    def overhead(self) -> float:
        """All that is neither building, nor waiting for a turn, nor time spent inside the kernel and its baselines."""
        return self.wall - self.build - self.wait - self.checking - self.measuring

    @property
    def beside_timing(self) -> float:
        """The same where the whole timing stage counts as measuring."""
        return self.wall - self.build - self.wait - self.checking - self.timing


@dataclass(kw_only=True)
class Endurance:
    """What a run found. ``planned``: so many evaluations were to be made."""

    done: list[Done] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    """The first is taken after the warm-up, the last after the last evaluation."""
    seconds: float = 0.0
    planned: int = 0

    def overheads(self, where: Callable[[Done], bool] = lambda _: True) -> list[float]:
        return sorted(one.overhead for one in self.done if where(one))

    def grown(self) -> dict[str, int]:
        """By what the last sample exceeds the first, where it does."""
        first, last = self.samples[0].counts, self.samples[-1].counts
        return {name: last[name] - first[name] for name in first if last[name] > first[name]}

    def slopes(self) -> dict[str, float]:
        """Of each count per 1 000 evaluations, over the second half."""
        half = self.samples[len(self.samples) // 2 :]
        return {name: 1000 * slope(half, name) for name in self.samples[0].counts}


def headlines(found: Endurance) -> list[str]:
    """The figures that were asked for."""
    if not found.done:
        return ["- No evaluation was made."]
    median = statistics.median(found.overheads())
    grown = {name: by for name, by in found.grown().items() if name != MEMORY}
    counts = ", ".join(f"{name} by {by}" for name, by in grown.items()) or "nothing"
    memory = found.samples[-1].counts[MEMORY] - found.samples[0].counts[MEMORY]
    met = "met" if median <= OVERHEAD_MS else "MISSED"
    slope_mib = found.slopes()[MEMORY] / 1024
    lines = [
        f"- Median overhead: {median:.1f} ms; aimed at: {OVERHEAD_MS:.0f} ms or less, {met}",
        f"- Grown: {counts}; the controller's memory by {memory / 1024:+.1f} MiB",
        f"- In the second half the controller's memory grows by {slope_mib:+.2f} MiB per 1 000 evaluations",
    ]
    if len(found.done) < found.planned:
        lines.append(f"- **Only {len(found.done)} of {found.planned} evaluations were made**")
    return lines


def page(found: Endurance, command: str, built: float) -> str:
    """The whole Markdown page. ``built``: the share of texts that were never seen before."""
    cpu = processor()
    hostile = sum(one.hostile for one in found.done)
    lines = [
        "# Endurance: evaluations in a row on one worker",
        "",
        (
            f"`{command}` on {cpu.model or platform.machine()}, {platform.system()} {platform.release()}: "
            f"{len(found.done)} evaluations in {found.seconds:.0f} s, {hostile} of them hostile; "
            f"{built:.0%} of the texts were built, the others came from the cache of artefacts."
        ),
        "",
        *headlines(found),
        "",
        "## Left behind",
        "",
        LEFT,
        "",
        "| | before | after | most | per 1 000 |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, per_thousand in found.slopes().items():
        values = [sample.counts[name] for sample in found.samples]
        lines.append(f"| {name} | {values[0]} | {values[-1]} | {max(values)} | {per_thousand:+.2f} |")
    lines += ["", "## What an evaluation costs beside building and measuring", "", COSTS, ""]
    lines += ["| ms | median | p95 | median beside the timing stage |", "|---|---:|---:|---:|"]
    kinds: dict[str, Callable[[Done], bool]] = {
        "all": lambda _: True,
        "passed": lambda one: one.status is Status.PASSED,
        "failed, honest": lambda one: one.status is not Status.PASSED and not one.hostile,
        "hostile": lambda one: one.hostile,
    }
    for name, where in kinds.items():
        values = found.overheads(where)
        if values:
            beside = statistics.median(one.beside_timing for one in found.done if where(one))
            median = statistics.median(values)
            lines.append(f"| {name} ({len(values)}) | {median:.1f} | {at(values, 0.95):.1f} | {beside:.1f} |")
    passed = [one for one in found.done if one.status is Status.PASSED]
    lines += ["", "Of those that passed, the median of each part:", "", "| part | ms |", "|---|---:|"]
    parts: dict[str, Callable[[Done], float]] = {
        "correctness, less its calls": lambda one: one.correctness - one.checking,
        "timing, less its calls": lambda one: one.timing - one.measuring,
        "diagnosis": lambda one: one.profile,
        "the rest": lambda one: one.framework,
    }
    for name, part in parts.items():
        lines.append(
            f"| {name} | {statistics.median(part(one) for one in passed):.1f} |" if passed else f"| {name} | |"
        )
    statuses = Counter((one.kernel, one.status.value) for one in found.done)
    lines += ["", "## Verdicts", "", "| kernel | verdict | times |", "|---|---|---:|"]
    lines += [f"| {kernel} | {status} | {times} |" for (kernel, status), times in sorted(statuses.items())]
    return "\n".join(lines) + "\n"


def at(ordered: list[float], share: float) -> float:
    """The order statistic below which ``share`` of the values lie."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
