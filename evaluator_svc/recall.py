"""Whether a kernel remembers instead of working (pure): what a block on new values costs, against one on old values.

Who remembers by less than all of the input gives a wrong answer, and is caught by it. Who compares all of it with what
it has had is right, and shows in this alone: blocks on whole draws that are new to the process, and blocks on draws
that it has had, in one turn, on equal buffers with equally empty caches. What is honest costs the same in both, so no
allowance is made but for noise. Half a gain more is an accusation; what is less is taken off the claim.

Where calls are in flight together, or an interpreter makes them, much of a short block is no call, and little or no
part of what is claimed. It is the same in both blocks of a pair, so the claim is held against their difference. Who
works in the first calls of every block, and remembers in the others, shows where the new values come last in long
blocks. How much long blocks scatter is much for a few calls: that is enough to accuse, three times, and not for a
discount.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from evaluator_svc.samples import CANDIDATE, Block, Measured
from shared.events import Entry

FEWEST = 4
"""Pairs that say anything."""
MAJORITY = 0.8
"""Of the pairs must agree."""
ACCUSED, CLEAR = 1.5, 1.25
"""New values cost this many times what known ones do: the median of the pairs, and the majority of them. Pairs of
blocks scatter by a tenth on a two-core virtual machine, and an accusation takes three measurements (``measuring``)."""
ACCUSED_LATE, CLEAR_LATE = 2.0, 1.5
"""The same of a few calls at the end of long blocks, which scatter as a whole: where single calls scatter by a tenth,
none of 1,200 honest measurements on simulated clocks reached it."""
DISCOUNTED = 1.05
"""From here on a claim is made for calls on new values: the scatter of medians of a few pairs."""


def remembers(measured: Sequence[Measured], *, overhead_ns: float) -> tuple[Entry, ...]:
    """Evidence that the kernel of ``measured`` (one per process) remembers; empty when it does not.

    All of it is time worked, not time passed: waiting for a core is no sign of anything. ``overhead_ns``: worked for a
    command, whatever it does.
    """
    pairs = _pairs(measured, overhead_ns, wall=False)
    if not _accuse(pairs, ACCUSED, CLEAR):
        pairs = _claimed(measured, late=True)
        if not _accuse(pairs, ACCUSED_LATE, CLEAR_LATE):
            return ()
    return (
        _entry("reason", "calls on values already seen skip work that calls on new values do"),
        _entry("new_values_ns", round(statistics.median(new for new, _ in pairs))),
        _entry("same_values_ns", round(statistics.median(known for _, known in pairs))),
        _entry("pairs_of_blocks", len(pairs)),
    )


def _accuse(pairs: Sequence[tuple[float, float]], median: float, mostly: float) -> bool:
    ratios = [new / known for new, known in pairs]
    return len(ratios) >= FEWEST and statistics.median(ratios) > median and _mostly(ratios, mostly)


def discount(measured: Sequence[Measured], *, overhead_ns: float, round_trip_ns: float | None = None) -> float:
    """By how many times a call on new values costs more than one on known values; at least 1.

    ``round_trip_ns``: what a command takes by the controller's clock; given for kernels with several threads, of which
    one may keep a processor busy in a block while the other skips: then both clocks are asked.
    """
    times = max(_dearer(_pairs(measured, overhead_ns, wall=False)), _dearer(_claimed(measured, late=False)))
    if round_trip_ns is None:
        return times
    return max(times, _dearer(_pairs(measured, round_trip_ns, wall=True)))


def _dearer(pairs: Sequence[tuple[float, float]]) -> float:
    ratios = [new / known for new, known in pairs]
    if len(ratios) < FEWEST or statistics.median(ratios) <= DISCOUNTED or not _mostly(ratios, 1.0):
        return 1.0
    return statistics.median(ratios)


def _pairs(measured: Sequence[Measured], overhead_ns: float, *, wall: bool) -> list[tuple[float, float]]:
    """Of each pair what a call on new values and one on known values took, without the command around them."""
    return [
        (_per_call(pair.new, overhead_ns, wall=wall), _per_call(pair.known, overhead_ns, wall=wall))
        for one in measured
        for pair in one.novelty
        if not pair.late
    ]


def _claimed(measured: Sequence[Measured], *, late: bool) -> list[tuple[float, float]]:
    """Of each pair of blocks of one length what a call on new values would be claimed to take, and what one on known
    values is.
    """
    return [
        (claimed_ns + (pair.new.own_ns - pair.known.own_ns) / (pair.late or pair.new.calls), claimed_ns)
        for one in measured
        if one.alike and (claimed_ns := one.samples[CANDIDATE].median_ns) > 0.0
        for pair in one.novelty
        if bool(pair.late) is late
    ]


def _per_call(block: Block, overhead_ns: float, *, wall: bool) -> float:
    return max(1.0, (block.wall_ns if wall else block.own_ns) - overhead_ns) / block.calls


def _mostly(ratios: Sequence[float], least: float) -> bool:
    return sum(ratio > least for ratio in ratios) >= MAJORITY * len(ratios)


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
