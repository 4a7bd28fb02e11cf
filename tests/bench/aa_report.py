"""What the trials of the A/A experiment say (pure): rates with exact intervals, tables, one page."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shared.events import PPM, Speedup, Status

CONFIDENCE = 0.95
FALSE_WINS_AIM, SEEN_AIM = 0.01, 0.95
"""Share of equal kernels that may be called faster, and of slowed ones that must be called slower."""


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


RIGHT = {Kind.EQUAL: Outcome.UNDECIDED, Kind.FINAL: Outcome.UNDECIDED, Kind.SLOWED: Outcome.SLOWER}
"""What each kind should be called. UNDECIDED where it should be SLOWER is no wrong claim, only a blunt one."""
Group = tuple[Kind, bool]
"""What is measured, and whether compilers run beside."""


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

    @property
    def group(self) -> Group:
        return self.kind, self.busy

    @property
    def wrong(self) -> bool:
        """A claim that is false: a gain or a loss that is none, a loss called a gain, or a right kernel refused."""
        return self.outcome not in (RIGHT[self.kind], Outcome.UNDECIDED, Outcome.NOISY)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Of one run: ``delta`` is the worker's noise floor, from ``pairs`` equal pairs; ``prepared_s`` what each operator
    took before its first trial; ``stopped`` why the run ended before its time (empty: it did not); ``planned`` the
    trials that were to be made.
    """

    command: str
    machine: str
    date: str
    seconds: float = 0.0
    prepared_s: tuple[float, ...] = ()
    delta: float = math.nan
    pairs: int = 0
    stopped: str = ""
    planned: Mapping[Group, int] = field(default_factory=dict)


def outcome(status: Status, speedup: Speedup | None) -> tuple[Outcome, float | None]:
    """What the product calls the candidate, by the words of its own claims, and the logarithm of its speedup."""
    if status is Status.NOISY:
        return Outcome.NOISY, None
    if status is not Status.PASSED or speedup is None:
        return Outcome.OTHER, None
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


def summary(trials: Sequence[Trial], planned: Mapping[Group, int]) -> dict[str, dict[str, str]]:
    """The figures of the experiment, by what was measured and beside what."""
    found: dict[str, dict[str, str]] = {}
    for group in ((kind, busy) for busy in (False, True) for kind in Kind):
        some = [one for one in trials if one.group == group]
        if some or planned.get(group):
            found[_name(group)] = {
                "trials": str(len(some)),
                "not made": str(max(0, planned.get(group, 0) - len(some))),
                **{word.value: str(rate(some, word)) for word in (Outcome.FASTER, Outcome.SLOWER, Outcome.OTHER)},
                "NOISY": str(rate(some, Outcome.NOISY, among_decided=False)),
            }
    return found


def by_operator(trials: Sequence[Trial], slowdowns: Mapping[str, object]) -> list[str]:
    """One row of the table for each operator."""
    rows = []
    for name in sorted({one.operator for one in trials}):
        mine = [one for one in trials if one.operator == name and not one.busy]
        equal = [one for one in mine if one.kind is not Kind.SLOWED]
        slowed = [one for one in mine if one.kind is Kind.SLOWED]
        sizes = [abs(one.log_ratio) for one in equal if one.log_ratio is not None]
        rounds = sorted(one.rounds for one in equal)
        rows.append(
            f"| {name} | {len(equal)} | {_count(equal, Outcome.FASTER)} | {_count(equal, Outcome.SLOWER)} | "
            f"{_count(equal, Outcome.NOISY)} | {_middle(equal)} | "
            f"{f'{100 * math.expm1(max(sizes)):.2f} %' if sizes else '-'} | "
            f"{rounds[len(rounds) // 2] if rounds else '-'} | {slowdowns.get(name, '-')} | {_middle(slowed)} | "
            f"{_count(slowed, Outcome.SLOWER)}/{len(slowed) - _count(slowed, Outcome.NOISY)} |"
        )
    return rows


def beside_compilers(trials: Sequence[Trial]) -> list[str]:
    """Rows: of the trials with compilers beside, how many claims were right, none, wrong, and refused as NOISY."""
    rows = []
    for kind in Kind:
        some = [one for one in trials if one.group == (kind, True)]
        if some:
            right, wrong = _count(some, RIGHT[kind]), sum(one.wrong for one in some)
            noisy = _count(some, Outcome.NOISY)
            blunt = len(some) - right - wrong - noisy
            share = Rate(hits=wrong, trials=len(some))
            rows.append(f"| {kind.value} | {len(some)} | {noisy} | {right} | {blunt} | {wrong} | {share} |")
    return rows


def headlines(trials: Sequence[Trial]) -> list[str]:
    """The figures that were asked for, each with what was aimed at and whether the numbers prove it."""
    quiet = [one for one in trials if not one.busy]
    wins = rate([one for one in quiet if one.kind is not Kind.SLOWED], Outcome.FASTER)
    seen = rate([one for one in quiet if one.kind is Kind.SLOWED], Outcome.SLOWER)
    busy = [one for one in trials if one.busy]
    wrong = Rate(hits=sum(one.wrong for one in busy), trials=len(busy))
    lines = []
    if wins.trials:
        met = wins.share < FALSE_WINS_AIM
        proved = "the interval proves it" if wins.interval[1] < FALSE_WINS_AIM else "the interval does not exclude more"
        lines.append(
            f"- Equal kernels called faster: {wins}; aimed at: below {100 * FALSE_WINS_AIM:.0f} %, "
            f"{f'met ({proved})' if met else 'MISSED'}"
        )
    if seen.trials:
        met = seen.share >= SEEN_AIM
        proved = "the interval proves it" if seen.interval[0] >= SEEN_AIM else "the interval does not exclude less"
        lines.append(
            f"- Kernels slowed by 2 % called slower: {seen}; aimed at: {100 * SEEN_AIM:.0f} % or more, "
            f"{f'met ({proved})' if met else 'MISSED'}"
        )
    if busy:
        noisy = rate(busy, Outcome.NOISY, among_decided=False)
        lines.append(f"- With compilers beside: wrong claims {wrong}, answered NOISY {noisy}")
    return lines


def page(trials: Sequence[Trial], slowdowns: Mapping[str, object], about: About) -> str:
    """The whole Markdown page."""
    figures = summary(trials, about.planned)
    missing = [f"{one['not made']} of {name}" for name, one in figures.items() if one["not made"] != "0"]
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
        *headlines(trials),
        "",
        f"- Command: `{about.command}`",
        f"- Machine: {about.machine}; {about.date}",
        f"- Noise floor of the worker: {100 * about.delta:.2f} %, of {about.pairs} equal pairs before the first trial",
        f"- {about.seconds:.0f} s in all; an operator was prepared in {_median(about.prepared_s):.1f} s (median)",
        f"- A trial took {_median([one.seconds for one in trials]):.1f} s (median)",
        *([f"- **Trials that were not made: {'; '.join(missing)}**"] if missing else []),
        *([f"- **The run did not end by itself: {about.stopped}**"] if about.stopped else []),
        "",
        "| measured | trials | not made | called faster | called slower | other verdicts | NOISY |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {one['trials']} | {one['not made']} | {one['faster']} | {one['slower']} | {one['other']} | "
            f"{one['NOISY']} |"
            for name, one in figures.items()
        ),
        "",
        "Without compilers beside, by operator. Rounds: the median. Slowdown: of the extra work, measured apart with",
        "ten times as much of it; in brackets the least and the most that one measurement showed. Ratios are the",
        "twin's time over the kernel's, medians of the trials. Seen: slowed kernels called slower, of those not NOISY.",
        "",
        "| operator | equal | faster | slower | NOISY | ratio | largest | rounds | slowdown | its ratio | seen |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *by_operator(trials, slowdowns),
    ]
    busy = beside_compilers(trials)
    if busy:
        lines += [
            "",
            "With compilers beside, of all trials. Right: equal kernels called neither faster nor slower, slowed ones",
            "slower. Undecided: slowed ones of which nothing was claimed. Wrong: any other claim or verdict.",
            "",
            "| measured | trials | NOISY | right | undecided | wrong | share wrong |",
            "|---|---|---|---|---|---|---|",
            *busy,
        ]
    odd = Counter((one.operator, one.kind.value, one.busy, one.said) for one in trials if one.wrong)
    if odd:
        lines += ["", "What the wrong claims said:", ""]
        lines += [
            f"- {operator}, {kind}{', compilers beside' if beside else ''}{f' ({count} times)' if count > 1 else ''}: "
            f"{said or 'faster or slower'}"
            for (operator, kind, beside, said), count in sorted(odd.items())
        ]
    return "\n".join(lines) + "\n"


def _name(group: Group) -> str:
    kind, busy = group
    return f"{kind.value}, {'compilers beside' if busy else 'quiet'}"


def _count(trials: Iterable[Trial], wanted: Outcome) -> int:
    return sum(one.outcome is wanted for one in trials)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else math.nan


def _middle(trials: Iterable[Trial]) -> str:
    """The median ratio."""
    ratios = sorted(one.log_ratio for one in trials if one.log_ratio is not None)
    return f"{math.exp(ratios[len(ratios) // 2]):.4f}" if ratios else "-"
