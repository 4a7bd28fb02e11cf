"""What the searches of the comparison say (pure): gains with intervals, paired ratios, costs, one page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.bench.synth_plan import Cell, Equal, Plan, Way

CONFIDENCE = 0.95
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Quantile 0.975 of Student's distribution with 1, 2, … degrees of freedom; the last serves for more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One finished search. ``gain``: the announced winner's re-measured speedup over the faster baseline; 1 without.

    ``by_writer`` counts evaluated candidates by who wrote them, ``unmeasured`` those that no attempt could measure,
    which are no evaluations; ``winner`` names the winner's writer; ``rejected`` counts answers without a kernel.
    Tokens, money and ``model_s`` are sums over all calls; ``cost`` is None when a price is unknown.
    """

    cell: Cell
    gain: float
    improved: bool
    evaluations: int
    seconds: float
    winner: str = ""
    by_writer: Mapping[str, int] = field(default_factory=dict)
    unmeasured: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    models: frozenset[str] = frozenset()
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    cost: float | None = 0.0
    model_s: float = 0.0
    money_spent: bool = False
    """Whether its money did not allow another answer."""
    ended: str = ""
    """Why it ended, where that is not one of its limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the answers came from. ``other`` of ``played`` recorded ones answered a question that was not recorded.

    ``unpriced`` says why their cost cannot be money; empty where it can.
    """

    live: bool
    endpoint: str
    note: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those that go with the endpoint, where the environment has no others."""
    played: int = 0
    other: int = 0
    unpriced: str = ""

    def __str__(self) -> str:
        if self.live:
            return f"live: {self.endpoint}"
        return (
            f"recorded from {self.endpoint}; {self.played - self.other} of {self.played} questions equal the recorded "
            f"ones, the others (a prompt quotes times, which differ in every run) were given the next recorded answer"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A geometric mean of ``count`` ratios with its 95 % interval from Student's distribution of their logarithms."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        if not self.count:
            return "-"
        if self.count == 1:
            return f"{self.mean:.3f} (one search: no interval)"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(values: Sequence[float]) -> Ratio:
    """The mean of ``values``, all positive."""
    n = len(values)
    if not n:
        return Ratio(mean=math.nan, low=math.nan, high=math.nan, count=0)
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / n
    if n == 1:
        return Ratio(mean=math.exp(mean), low=0.0, high=math.inf, count=1)
    deviation = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (n - 1))
    half = _T[min(n - 1, len(_T)) - 1] * deviation / math.sqrt(n)
    return Ratio(mean=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half), count=n)


def paired(outcomes: Iterable[Outcome], way: Way, other: Way) -> Ratio:
    """The gain of ``way`` over that of ``other``, by pairs of the same operator and seed."""
    gains = {(one.cell.operator, one.cell.seed, one.cell.way): one.gain for one in outcomes}
    pairs = [
        (gain, gains[operator, seed, other])
        for (operator, seed, mine), gain in gains.items()
        if mine is way and (operator, seed, other) in gains
    ]
    return ratio([gain / reference for gain, reference in pairs])


def row(outcomes: Sequence[Outcome], way: Way, *, each: float = 0.0) -> str:
    """One line of a table: what ``way`` found and what that took, per search where not said otherwise; ``each`` search
    that asks a model may spend so much money, 0 is no limit.
    """
    mine = [one for one in outcomes if one.cell.way is way]
    n = len(mine)
    if not n:
        return f"| {way} | 0 |" + " - |" * (len(COLUMNS) - 2)
    gain = ratio([one.gain for one in mine])
    versus = "1" if way is Way.SCHEDULES else str(paired(outcomes, way, Way.SCHEDULES))
    evaluations = sum(one.evaluations for one in mine) / n
    seconds, model_s = sum(one.seconds for one in mine) / n, sum(one.model_s for one in mine) / n
    winners = _told(Counter(one.winner for one in mine if one.winner))
    columns = (
        str(n), str(sum(one.improved for one in mine)), str(gain), versus, winners,
        f"{evaluations:.1f}", _evaluated(mine), _summed(one.rejected for one in mine),
        f"{seconds:.0f} ({model_s:.0f})", tokens(mine), money(mine, of=n * each if way.asks else 0.0),
    )  # fmt: skip
    return f"| {way} | " + " | ".join(columns) + " |"


COLUMNS = (
    "way", "searches", "improved", "gain", "× schedules", "winners by", "evaluations", "evaluated kernels by",
    "answers without a kernel", "seconds (in calls)", "tokens in (cached), out", "money",
)  # fmt: skip


def tokens(mine: Sequence[Outcome]) -> str:
    """Sums over all searches; ``≈`` where an endpoint left counts out."""
    if not any(one.requests or one.input_tokens for one in mine):
        return "0"
    about = "≈ " if any(one.estimated for one in mine) else ""
    sums = [sum(getattr(one, name) for one in mine) for name in ("input_tokens", "cached_tokens", "output_tokens")]
    return f"{about}{sums[0]} ({sums[1]}), {sums[2]} in {sum(one.requests for one in mine)} requests"


def money(mine: Sequence[Outcome], *, of: float = 0.0) -> str:
    """The sum over all searches, ``of`` what they might spend; unknown when one of them is."""
    costs = [one.cost for one in mine]
    known = [cost for cost in costs if cost is not None]
    spent = f"{sum(known):.4f}" if len(known) == len(costs) else "unknown"
    return f"{spent} of {of:.4f}" if of else spent


def table(outcomes: Sequence[Outcome], ways: Sequence[Way], *, each: float = 0.0) -> list[str]:
    rows = (row(outcomes, way, each=each) for way in ways)
    return ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS), *rows]


def at_equal_cost(outcomes: Sequence[Outcome], plan: Plan, source: Source) -> list[str]:
    """The section of the searches that may cost alike: money where it has a price, seconds where it has none."""
    if not plan.money:
        why = source.unpriced or "no limit of money was asked for"
        return [
            f"## At equal cost: {plan.seconds:g} s per search",
            "",
            f"**Cost is time here**, because {why}. Writing, waiting for a model and evaluating all count; what was",
            "measured again at the end does not.",
            "",
            *table(outcomes, plan.ways),
        ]
    each = f"{plan.money:g} {plan.currency}".strip()
    return [
        f"## At equal cost: {each} per search, within {plan.seconds:g} s",
        "",
        f"**Cost is money here.** Each search that asks a model may spend {each} on it, and ends when that allows no",
        "further answer; `hybrid` then goes on with schedules. A budget stops *before* it is exceeded, so that less is",
        "spent than allowed: the last column has both. Schedules cost no money: they are compared at equal time, and",
        f"have the {plan.seconds:g} s that every search has at most. Writing, waiting for a model and evaluating all",
        "take of them; what was measured again at the end does not.",
        "",
        *table(outcomes, plan.ways, each=plan.money),
        *_unspent(outcomes, plan),
    ]


def _unspent(outcomes: Sequence[Outcome], plan: Plan) -> list[str]:
    """For which ways time, and not money, was the limit: their comparison is one at equal seconds."""
    told = []
    for way in plan.ways:
        mine = [one for one in outcomes if one.cell.way is way and way.asks]
        left = sum(not one.money_spent for one in mine)
        told += [f"{way} {left} of {len(mine)}"] if left else []
    if not told:
        return []
    return [
        "",
        f"**Not limited by money**: {', '.join(told)}. These searches ended, by time or otherwise, with money for",
        "another answer left; more `--seconds`, or less `--money`, makes their cost equal.",
    ]


def page(
    outcomes: Sequence[Outcome],
    plan: Plan,
    source: Source,
    *,
    command: str,
    machine: str,
    date: str,
    unfinished: Sequence[str] = (),
    left: int = 0,
) -> str:
    """The whole Markdown page. Searches that are ``unfinished`` did not end and are in no table; ``left`` is the number
    of those that were not begun.
    """
    models = sorted(set().union(*(one.models for one in outcomes)) if outcomes else [])
    lines = [
        "# What a model adds to the schedules",
        "",
        "The same searches with candidates written by schedules alone, by a model that chooses schedule moves, by a",
        "model that writes whole kernels, and by the product's own mixture (hybrid). Each is a search of its own on",
        "the command line, and starts without skills. *Gain* is the announced winner's speedup, measured again in",
        "fresh processes, over the faster of eager and `torch.compile`; 1 where nothing was announced. Brackets are",
        "95 % intervals (Student's distribution of the logarithms over operators and seeds); *× schedules* pairs",
        "searches of the same operator and seed. An interval that holds 1 shows no difference.",
        "",
        f"- Command: `{command}`",
        f"- Machine: {machine}; {date}",
        f"- Model: {', '.join(f'`{name}`' for name in models) or 'none answered in a search that ended'}; {source}",
        f"- Operators: {', '.join(plan.operators)}; seeds {', '.join(map(str, plan.seeds))}",
        f"- {len(outcomes)} searches",
    ]
    lines += [f"- Chip: {plan.chip}"] if plan.chip else []
    lines += [f"- **Stopped early: {left} searches of the plan were not begun**"] if left else []
    lines += [f"- Settings: {', '.join(f'`{k}={v}`' for k, v in source.settings.items())}"] if source.settings else []
    lines += [f"- {source.note}"] if source.note else []
    if plan.evaluations:
        mine = [one for one in outcomes if one.cell.equal is Equal.EVALUATIONS]
        lines += ["", f"## At equal evaluations: {plan.evaluations} per search", "", *table(mine, plan.ways)]
    if plan.seconds:
        mine = [one for one in outcomes if one.cell.equal is Equal.COST]
        lines += ["", *at_equal_cost(mine, plan, source)]
    early = Counter(f"{one.cell.way}: {one.ended}" for one in outcomes if one.ended)
    if early:
        lines += ["", "Searches that ended before a limit:", ""]
        lines += [f"- {count} × {what}" for what, count in sorted(early.items())]
    if unfinished:
        lines += ["", f"**{len(unfinished)} searches did not end** and are in no table:", ""]
        lines += [f"- {what}" for what in unfinished]
    return "\n".join(lines) + "\n"


def _evaluated(mine: Sequence[Outcome]) -> str:
    told, left = _summed(one.by_writer for one in mine), sum(one.unmeasured for one in mine)
    return f"{told}; {left} not measured" if left else told


def _summed(counts: Iterable[Mapping[str, int]]) -> str:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return _told(total)


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "-"
