"""Clocks that cannot all be true (pure).

No time that counts is taken in the candidate's reach, but what a block of N calls takes is one number, and who makes
it small without doing the work leaves traces in others:

=============  ==========================================================================================
mean           T(N) / N, of blocks, by the controller's wall clock: what is claimed
slope          [T(2N) - T(N)] / N, of the two blocks of a round: work done once per block is not in it
processor      cannot exceed wall time x threads, or work was done outside of the block
runner         the runner's own clock lies inside the controller's; it is evidence, and forged where it does not
device events  on a GPU: cannot exceed the wall clock (``ending.impossible_clock``); else evidence
=============  ==========================================================================================

Medians and quartiles over blocks: a busy machine delays some of them, a forged clock is off in all.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluator_svc.samples import CANDIDATE, Clocked, Measured, Samples
from evaluator_svc.settings import TimingSettings
from shared.events import PPM

SLOPE_SHARE, SLOPE_MAJORITY = 0.6, 0.8
"""Calls that follow another in a block cost at least this share of the mean. A kernel that works in the first call of
a block only has none at all; one that is right has 1 less the round trip and the cold outputs of the first call, and
blocks of two and four calls of 2 ms each scatter by 5 to 10 % on an idle two-core virtual machine. The majority of
rounds must say so, within half of what is missing."""
PAIRS_MIN = 3
"""Fewer rounds give no slope."""
CPU_SHARE = 1.05
CPU_SLACK_NS = 150_000
"""Per block, beyond wall time x threads: the empty command that follows every block is in the processor's account (20
to 50 µs), and not in the wall clock's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two clocks and what they say, ns for the same calls."""

    one: str
    one_ns: float
    other: str
    other_ns: float

    def __str__(self) -> str:
        return f"{self.one} {self.one_ns:.0f} ns, {self.other} {self.other_ns:.0f} ns"


def disagreement(
    measured: Sequence[Measured], settings: TimingSettings, *, threads: int, overhead_ns: float
) -> Disagreement | None:
    """The first two clocks of ``measured`` that cannot both be true. ``overhead_ns``: of a command as such."""
    clocks = [one for process in measured for one in process.clocks]
    # Where calls are in flight together, no call adds to a part of a block: getting the device, and waiting for it.
    mine = [process.samples[CANDIDATE] for process in measured if not process.pipelined]
    return (
        _slope(mine, overhead_ns)
        or _processor(clocks, threads)
        or _runner(clocks, settings, threads)
    )  # fmt: skip


def slope_ns(per_call_ns: Sequence[float], lengths: Sequence[int]) -> float | None:
    """Median over rounds of what one more call in a block costs; None with too few rounds of two lengths."""
    found = _slopes(per_call_ns, lengths)
    return statistics.median(found) if len(found) >= PAIRS_MIN else None


def _slopes(per_call_ns: Sequence[float], lengths: Sequence[int]) -> list[float]:
    return [
        (long * n_long - short * n_short) / (n_long - n_short)
        for (short, n_short), (long, n_long) in _rounds(per_call_ns, lengths)
        if n_long != n_short
    ]


def _slope(mine: Iterable[Samples], overhead_ns: float) -> Disagreement | None:
    for samples in mine:
        # Waiting for a core falls on any block; what the kernel worked must say the same.
        if all(
            _flat(times, samples.lengths, overhead_ns) for times in (samples.block_ns, samples.own_block_ns) if times
        ):
            slope = slope_ns(samples.block_ns, samples.lengths) or 0.0
            return Disagreement(
                one="mean of a call",
                one_ns=samples.median_ns,
                other="slope between two block lengths",
                other_ns=slope,
            )
    return None


def _flat(per_call_ns: Sequence[float], lengths: Sequence[int], overhead_ns: float) -> bool:
    """Whether calls after the first of a block cost far too little."""
    slopes = _slopes(per_call_ns, lengths)
    if len(slopes) < PAIRS_MIN:
        return False
    # The round trip is part of every block, and of the mean in proportion.
    due = statistics.median(per_call_ns) - overhead_ns / statistics.median(lengths)
    clear = sum(one < (1.0 + SLOPE_SHARE) / 2 * due for one in slopes)
    return statistics.median(slopes) < SLOPE_SHARE * due and clear >= SLOPE_MAJORITY * len(slopes)


def _processor(clocks: Sequence[Clocked], threads: int) -> Disagreement | None:
    known = [one for one in clocks if one.cpu_ns is not None]
    if not known:
        return None
    wall = sum(one.controller_ns for one in known)
    spent = sum(one.cpu_ns or 0 for one in known)
    if spent <= CPU_SHARE * threads * wall + CPU_SLACK_NS * len(known):
        return None
    return Disagreement(one=f"wall clock x {threads} threads", one_ns=threads * wall, other="processor", other_ns=spent)


def _runner(clocks: Sequence[Clocked], settings: TimingSettings, threads: int) -> Disagreement | None:
    if not clocks:
        return None
    # The block at the first quartile of excess.
    ordered = sorted(clocks, key=lambda one: one.controller_ns - one.runner_ns)
    chosen = ordered[len(ordered) // 4]
    excess = chosen.controller_ns - chosen.runner_ns
    slack = chosen.controller_ns * settings.clock_slack_ppm / PPM + settings.clock_slack_ns
    # A late answer is no forged clock: the runner must claim less than the processor worked, too.
    worked = chosen.controller_ns if chosen.cpu_ns is None else min(chosen.cpu_ns / threads, chosen.controller_ns)
    if excess >= 0 and (excess <= slack or worked - chosen.runner_ns <= slack):
        return None
    return Disagreement(
        one="controller", one_ns=chosen.controller_ns, other="runner", other_ns=chosen.runner_ns
    )  # fmt: skip


def _rounds(
    per_call_ns: Sequence[float], lengths: Sequence[int]
) -> Iterable[tuple[tuple[float, int], tuple[float, int]]]:
    """Per round its shorter block and its longer one, each with its number of calls."""
    blocks = list(zip(per_call_ns, lengths, strict=True))
    for first, second in zip(blocks[::2], blocks[1::2], strict=False):
        yield (first, second) if first[1] < second[1] else (second, first)
