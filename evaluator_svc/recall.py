"""Whether a kernel remembers instead of working (pure): what a call on new values costs, against one on old values.

Two comparisons. A call on new values and one on the same values written again differ in nothing but what a kernel may
remember: same buffers, same caches, same command. So little more than noise is allowed. And calls on fresh values
against calls in a block, which differ by caches, too, so that the baselines, on the same inputs in the same rounds, are
the measure of what is honest.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from evaluator_svc.clocks import slope_ns
from evaluator_svc.samples import CANDIDATE, Again, Measured, Samples
from shared.events import Entry

AGAIN_SHARE = 0.25
AGAIN_SLACK_NS = 15_000.0
AGAIN_TRAFFICS = 0.5
"""By which a call on new values may exceed one on the same values again, the last in times of the compulsory traffic at
memory's rate: who remembers by all of the input must read all of it, so little is given away."""
MAJORITY = 0.8
"""Of the pairs, or of the calls, must exceed half of what is allowed, so that a few delays accuse nobody."""
AGAIN_FEWEST = 4
"""Pairs. An honest kernel whose single calls scatter by a half is accused once in a hundred measurements, and an
accusation takes three of them (``measuring``)."""
FRESH_SHARE = 0.5
"""Branch predictors and prefetchers learn values that come again."""
FRESH_SLACK_NS = 30_000.0
FRESH_CONTROL = 1.5
FRESH_TRAFFICS = 1.0
"""A first call may read its inputs from memory, and fetch the lines of its outputs."""
DISCOUNT_SHARE, DISCOUNT_SLACK_NS = 0.05, 5_000.0
"""What a call on fresh values may cost more than a repeated one, besides caches, before a claim is made for the fresh
ones: the scatter of medians of a dozen single calls."""


def remembers(measured: Sequence[Measured], *, memory_traffic_ns: float, overhead_ns: float) -> tuple[Entry, ...]:
    """Evidence that the kernel of ``measured`` (one per process) remembers; empty when it does not.

    All of it is time worked, not time passed: waiting for a core is no sign of anything. ``memory_traffic_ns``: all
    compulsory traffic at memory's rate. ``overhead_ns``: worked for a command, whatever it does.
    """
    pairs = [pair for one in measured for pair in one.again]
    poisoned, held = ([pair for pair in pairs if pair.held is held] for held in (False, True))
    found = _again(poisoned, memory_traffic_ns, "written again")
    found = found or _again(held, memory_traffic_ns, "whose answer it finds in its output")
    if found:
        return found
    return _fresh(measured, memory_traffic_ns, overhead_ns)


def _again(pairs: Sequence[Again], memory_traffic_ns: float, what: str) -> tuple[Entry, ...]:
    if len(pairs) < AGAIN_FEWEST:
        return ()
    again = statistics.median(pair.again_ns for pair in pairs)
    allowed = AGAIN_SHARE * again + AGAIN_SLACK_NS + AGAIN_TRAFFICS * memory_traffic_ns
    excesses = [pair.new_ns - pair.again_ns for pair in pairs]
    clear = sum(excess > allowed / 2 for excess in excesses)
    if statistics.median(excesses) <= allowed or clear < MAJORITY * len(pairs):
        return ()
    return (
        _entry("reason", f"a call on values {what} skips work that a call on new values does"),
        _entry("new_values_ns", round(statistics.median(pair.new_ns for pair in pairs))),
        _entry("same_values_ns", round(again)),
        _entry("allowed_difference_ns", round(allowed)),
    )


def _fresh(measured: Sequence[Measured], memory_traffic_ns: float, overhead_ns: float) -> tuple[Entry, ...]:
    mine = [one.samples[CANDIDATE] for one in measured]
    first = [t for one in mine for t in one.own_fresh_ns]
    if not first:
        return ()
    repeated = statistics.median(_repeated(one) for one in mine)
    caches = max(FRESH_CONTROL * _controls(measured), FRESH_TRAFFICS * memory_traffic_ns)
    allowed = FRESH_SHARE * repeated + FRESH_SLACK_NS + caches
    excesses = [t - overhead_ns - repeated for t in first]
    clear = sum(excess > allowed / 2 for excess in excesses)
    if statistics.median(excesses) <= allowed or clear < MAJORITY * len(excesses):
        return ()
    return (
        _entry("reason", "calls on values already seen skip work that calls on fresh values do"),
        _entry("fresh_call_ns", round(statistics.median(first))),
        _entry("repeated_call_ns", round(repeated)),
        _entry("allowed_difference_ns", round(allowed)),
    )


def discount(
    measured: Sequence[Measured], *, memory_traffic_ns: float, overhead_ns: float, round_trip_ns: float | None = None
) -> float:
    """By how many times a call on fresh values costs more than one of a block, beyond what caches explain; at least 1.

    Who leaves out a part of the work that an accusation would not notice gains nothing by it: a claim is made for calls
    on fresh values. ``round_trip_ns``: what a command takes by the controller's clock; given for kernels with several
    threads, of which one may keep a processor busy in a block while the other skips: then both clocks are asked.
    """
    mine = [one.samples[CANDIDATE] for one in measured]
    caches = _controls(measured), memory_traffic_ns
    times = _dearer(
        [t for one in mine for t in one.own_fresh_ns],
        [t for one in mine for t in one.own_block_ns],
        overhead_ns,
        caches,
    )
    if round_trip_ns is None:
        return times
    passed = [t for one in mine for t in one.fresh_ns], [t for one in mine for t in one.block_ns]
    return max(times, _dearer(*passed, round_trip_ns, caches))


def _dearer(first: Sequence[float], block: Sequence[float], overhead_ns: float, caches: tuple[float, float]) -> float:
    """By how many times ``first`` calls cost more than those of a ``block``. ``caches``: ``_controls`` and traffic."""
    if not first:
        return 1.0
    # A GPU's clock is in the candidate's reach, and may say that nothing took any time.
    repeated = max(1.0, statistics.median(block))
    excess = statistics.median(first) - overhead_ns - repeated
    control_ns, traffic_ns = caches
    excess -= _caches(control_ns, repeated, traffic_ns)
    if excess <= DISCOUNT_SHARE * repeated + DISCOUNT_SLACK_NS:
        return 1.0
    return 1.0 + excess / repeated


def _caches(control_ns: float, repeated_ns: float, memory_traffic_ns: float) -> float:
    """What a first call may cost more because its values are not in a cache: as the baselines show, or, for a kernel
    that is faster than memory when its data is in a cache, the compulsory traffic at memory's rate. Never more than
    that traffic: a baseline's first call is also dearer for what PyTorch does after a pause, which explains nothing.
    """
    explained = max(FRESH_CONTROL * control_ns, memory_traffic_ns - repeated_ns, 0.0)
    return min(explained, memory_traffic_ns)


def _controls(measured: Sequence[Measured]) -> float:
    return max(
        (_control([one.samples[name] for one in measured]) for name in measured[0].samples if name != CANDIDATE),
        default=0.0,
    )


def _repeated(samples: Samples) -> float:
    mean = statistics.median(samples.own_block_ns)
    slope = slope_ns(samples.own_block_ns, samples.lengths)
    # A slope that noise has bent below the half of the mean says nothing about work.
    return mean if slope is None or slope < mean / 2 else min(slope, mean)


def _control(baseline: Sequence[Samples]) -> float:
    """What fresh values cost a baseline, by its own clock, which has no round trip in it; 0 where it keeps none."""
    fresh = [t for one in baseline for t in one.own_fresh_ns]
    block = [t for one in baseline for t in one.own_block_ns]
    return max(0.0, statistics.median(fresh) - statistics.median(block)) if fresh and block else 0.0


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
