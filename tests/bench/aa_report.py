"""What the trials of the A/A experiment say (pure): rates with exact intervals, tables, one page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evaluator_svc.claims import Claim
from shared.events import PPM, Status

CONFIDENCE = 0.95


class Kind(StrEnum):
    EQUAL = "equal"
    """A/A: the same kernel in two processes."""
    SLOWED = "slowed"
    """A/B: the candidate has extra work."""
    FINAL = "final"
    """A/A as an announcement is made: several fresh processes."""


class Outcome(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    UNDECIDED = "undecided"
    NOISY = "NOISY"
    OTHER = "other"
    """Any other verdict: on a kernel that is right it is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One measurement. ``log_ratio``: ``log(twin / candidate)``, None without a speedup."""

    operator: str
    kind: Kind
    busy: bool
    outcome: Outcome
    log_ratio: float | None = None
    rounds: int = 0
    seconds: float = 0.0
    said: str = ""


def outcome(claim: Claim) -> tuple[Outcome, float | None]:
    """What the product calls the candidate, by the words of its own claims."""
    if claim.status is Status.NOISY:
        return Outcome.NOISY, None
    if claim.status is not Status.PASSED:
        return Outcome.OTHER, None
    (speedup,) = claim.speedups
    ratio = math.log(speedup.ratio_ppm / PPM)
    if speedup.proves_gain:
        return Outcome.FASTER, ratio
    return (Outcome.SLOWER if speedup.high_ppm < PPM else Outcome.UNDECIDED), ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """``hits`` of ``trials``, with the exact interval of C. Clopper, E. Pearson, Biometrika 26 (1934)."""

    hits: int
    trials: int

    @property
    def share(self) -> float:
        return self.hits / self.trials if self.trials else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        tail = (1 - CONFIDENCE) / 2
        n, k = self.trials, self.hits
        if not n:
            return 0.0, 1.0
        low = 0.0 if k == 0 else _solve(lambda p: 1 - _at_most(k - 1, n, p), tail)
        high = 1.0 if k == n else _solve(lambda p: 1 - _at_most(k, n, p), 1 - tail)
        return low, high

    def __str__(self) -> str:
        if not self.trials:
            return "-"
        low, high = self.interval
        return f"{self.hits}/{self.trials} = {100 * self.share:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _at_most(k: int, n: int, p: float) -> float:
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


def _solve(increasing: Any, target: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < target else (low, middle)
    return (low + high) / 2


def rate(trials: Iterable[Trial], wanted: Outcome, *, among_decided: bool = True) -> Rate:
    """How often ``wanted`` among those that were measured (``among_decided``: NOISY ones left out)."""
    counted = [one for one in trials if not among_decided or one.outcome is not Outcome.NOISY]
    return Rate(hits=sum(one.outcome is wanted for one in counted), trials=len(counted))


def summary(trials: Sequence[Trial]) -> dict[str, dict[str, str]]:
    """The figures of the experiment, by what was measured and beside what."""
    found: dict[str, dict[str, str]] = {}
    for busy in (False, True):
        for kind in Kind:
            some = [one for one in trials if one.kind is kind and one.busy is busy]
            if some:
                found[f"{kind.value}, {'compilers beside' if busy else 'quiet'}"] = {
                    "trials": str(len(some)),
                    **{word.value: str(rate(some, word)) for word in (Outcome.FASTER, Outcome.SLOWER, Outcome.OTHER)},
                    "NOISY": str(rate(some, Outcome.NOISY, among_decided=False)),
                }
    return found


def by_operator(trials: Sequence[Trial], slowdowns: dict[str, float]) -> list[str]:
    """One row of the table for each operator."""
    rows = []
    for name in sorted({one.operator for one in trials}):
        mine = [one for one in trials if one.operator == name and not one.busy]
        equal = [one for one in mine if one.kind is not Kind.SLOWED]
        slowed = [one for one in mine if one.kind is Kind.SLOWED]
        sizes = sorted(one.log_ratio for one in equal if one.log_ratio is not None)
        middle = f"{math.exp(sizes[len(sizes) // 2]):.4f}" if sizes else "-"
        most = f"{100 * math.expm1(max(map(abs, sizes))):.2f} %" if sizes else "-"
        rounds = sorted(one.rounds for one in equal)
        rows.append(
            f"| {name} | {len(equal)} | {_count(equal, Outcome.FASTER)} | {_count(equal, Outcome.SLOWER)} | "
            f"{_count(equal, Outcome.NOISY)} | {middle} | {most} | {rounds[len(rounds) // 2] if rounds else '-'} | "
            f"{100 * slowdowns.get(name, math.nan):.2f} % | {_count(slowed, Outcome.SLOWER)}/"
            f"{len(slowed) - _count(slowed, Outcome.NOISY)} |"
        )
    return rows


def _count(trials: Iterable[Trial], wanted: Outcome) -> int:
    return sum(one.outcome is wanted for one in trials)


def page(
    trials: Sequence[Trial], slowdowns: dict[str, float], *, command: str, machine: str, delta: float, date: str
) -> str:
    """The whole Markdown page."""
    figures = summary(trials)
    lines = [
        "# Equal kernels, and kernels slowed by 2 %",
        "",
        "How often the evaluator calls a kernel faster or slower than itself, in another process; how often it calls a",
        "kernel slower that has 2 % more work. Every trial goes through the measuring and the claims of the product,",
        "with fresh values and every timed answer verified; the second process stands in the place of the baselines.",
        "A trial is one measurement, without the repetitions that a noisy moment gets in a search. *Faster* means that",
        "the interval lies above 1 by more than the worker's noise floor, *slower* that it lies below 1. Rates are of",
        "the trials that were not NOISY, with exact 95 % intervals (Clopper, Pearson).",
        "",
        f"- Command: `{command}`",
        f"- Machine: {machine}; {date}",
        f"- Noise floor of the worker: {100 * delta:.2f} %",
        "",
        "| measured | trials | called faster | called slower | other verdicts | NOISY |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {one['trials']} | {one['faster']} | {one['slower']} | {one['other']} | {one['NOISY']} |"
            for name, one in figures.items()
        ),
        "",
        "Without compilers beside, by operator (rounds: the median; slowdown: measured at length by itself):",
        "",
        "| operator | equal | faster | slower | NOISY | median ratio | largest | rounds | slowdown | called slower |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *by_operator(trials, slowdowns),
    ]
    return "\n".join(lines) + "\n"
