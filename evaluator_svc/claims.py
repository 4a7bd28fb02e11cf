"""From block times to what may be claimed: speedups with intervals, or why this moment allows none (pure)."""

from __future__ import annotations

import math
import statistics as stdlib_statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc import clocks, recall, statistics
from evaluator_svc.clocks import Disagreement
from evaluator_svc.layers import Layer, caught
from evaluator_svc.roofline import Floors, binding, implausible
from evaluator_svc.samples import CANDIDATE, Measured
from evaluator_svc.settings import TimingSettings
from shared.events import PPM, Entry, Speedup, Status, Timing, Trust

OVERHEAD_MAX_NS = 100_000.0
"""A command that makes no call takes 15 to 40 µs. What it takes longer is the candidate's own doing."""
SETTLES, SETTLE_SLACK_NS = 2.0, 20_000.0
"""Nor may it take longer than that of the empty commands after calls, which are alike, and this."""
RESOLUTION_SHARE = 0.5
"""A block this much of which is the command itself measures no kernel."""

DISPATCH_MATTERS_NS = 100_000
"""PyTorch's dispatch costs 2 to 5 µs a call on a CPU; below this time it is more than a few per cent of a baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``status`` is PASSED, NOISY or CHEAT; timings are kept in every case."""

    status: Status
    trust: Trust
    timings: tuple[Timing, ...]
    speedups: tuple[Speedup, ...]
    evidence: tuple[Entry, ...]
    median_ns: float
    floors: Floors | None = None
    """Those that bind this operator and kernel; None without a measurement."""
    clocks_agree: bool = True
    of_times: bool = False
    """It accuses by times, which a busy machine can spoil, and not by what was given for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """What no honest time can beat: floors of all traffic and of the outputs' alone."""

    floors: Floors
    written: Floors


def noisy(measured: Sequence[Measured], settings: TimingSettings, seed: int) -> tuple[Entry, ...]:
    """Why these blocks allow no claim, from the baselines' own times (never the candidate's) and from what others did
    on the machine; empty when they do.
    """
    reasons = [entry for one in measured for entry in one.disturbed]
    for name in _baselines(measured):
        for one in measured:
            times = one.samples[name].block_ns
            control = statistics.self_ratio(times, seed)
            if control.beyond(settings.drift_ppm / PPM):
                reasons.append(_entry(f"a_a_{name}", f"{control.ratio:.3f} [{control.low:.3f}, {control.high:.3f}]"))
            scatter = statistics.spread(times)
            if scatter > settings.spread_ppm / PPM:
                reasons.append(_entry(f"spread_{name}", f"{scatter:.3f}"))
    return tuple(reasons)


def claim(
    measured: Sequence[Measured],
    settings: TimingSettings,
    physics: Physics,
    seed: int,
    *,
    threads: int,
    delta: float = statistics.DELTA_UNKNOWN,
) -> Claim:
    """The claim that ``measured`` (one per fresh process) supports; ``delta`` is the worker's noise floor."""
    timings = tuple(_timing(name, measured) for name in (CANDIDATE, *_baselines(measured)))
    median = float(timings[0].median_ns)

    fastest = min(one.samples[CANDIDATE].median_ns for one in measured)
    trusted = min(one.samples[name].median_ns for one in measured for name in _baselines(measured))
    floors = binding(physics.floors, physics.written, measured_ns=median, trusted_ns=trusted)
    settled = [t for one in measured for t in one.settle_ns]
    overhead = overhead_ns([t for one in measured for t in one.empty_ns], settled)
    disagreement = clocks.disagreement(measured, settings, threads=threads, overhead_ns=overhead)

    def done(status: Status, trust: Trust, evidence: tuple[Entry, ...], speedups: tuple[Speedup, ...] = ()) -> Claim:
        return Claim(
            status=status,
            trust=trust,
            timings=timings,
            speedups=speedups,
            evidence=evidence,
            median_ns=median,
            floors=floors,
            clocks_agree=disagreement is None,
            of_times=status is Status.CHEAT,
        )

    if implausible(floors, fastest, settings.implausible_ppm):
        evidence = (
            caught(Layer.FLOOR),
            _entry("reason", "faster than the machine can move the operator's data"),
            _entry("measured_ns", round(fastest)),
            _entry("floor_ns", round(floors.memory_ns)),
        )
        return done(Status.CHEAT, Trust.NONE, evidence)
    reasons = noisy(measured, settings, seed)
    worked = overhead_ns([t for one in measured for t in one.empty_own_ns], settled)
    times = recall.discount(measured, overhead_ns=worked, round_trip_ns=overhead if threads > 1 else None)
    speedups = tuple(_speedup(name, measured, seed, delta, times) for name in _baselines(measured))
    remembered = recall.remembers(measured, overhead_ns=worked)
    suspicion = (*remembered, *_entries(disagreement))
    if reasons and (suspicion or not _clear_loss(speedups)):  # what looks forged is told by a quiet moment, not passed
        return done(Status.NOISY, Trust.NONE, (caught(Layer.STATISTICS), *reasons, *suspicion))
    for layer, found in ((Layer.FRESH, remembered), (Layer.CLOCKS, _entries(disagreement))):
        if found and not reasons:
            return done(Status.CHEAT, Trust.NONE, (caught(layer), *found))
    unresolved = _unresolved(measured, overhead)
    if unresolved:
        return done(Status.NOISY, Trust.NONE, unresolved)
    trust = Trust.L2 if reasons else Trust.L3
    verified = _entry("timed_calls_verified", sum(one.verified for one in measured))
    fresh = _entry("on_fresh_values", sum(one.first_uses for one in measured))
    stopped = _entry("stopped", ", ".join(one.decision.value for one in measured if one.decision is not None))
    slower = () if times == 1.0 else (_entry("claimed_for_fresh_values", f"which take {times:.2f} times known ones"),)
    told = (
        verified,
        fresh,
        stopped,
        *slower,
        *_off_calls(measured),
        *_dispatch(timings),
        *reasons,
        *_watched(measured, reasons),
    )
    return done(Status.PASSED, trust, told, speedups)


def _watched(measured: Sequence[Measured], reasons: Sequence[Entry]) -> tuple[Entry, ...]:
    """What each watch saw first where it is not among the reasons: which signals there were is part of a claim."""
    named = {entry.name: entry for one in reversed(measured) for entry in one.watched if entry not in reasons}
    return tuple(named.values())


def _off_calls(measured: Sequence[Measured]) -> tuple[Entry, ...]:
    """What was taken off the candidate's blocks."""
    off_ns = max(one.off_calls_ns for one in measured)
    said = f"{off_ns:.0f} of each block of the candidate's, by what a kernel of the evaluator's takes in its place"
    return (_entry("off_calls_ns", said),) if off_ns else ()


def _dispatch(timings: Sequence[Timing]) -> tuple[Entry, ...]:
    """A caveat for small operators: what PyTorch spends on a call before any kernel runs is part of a baseline."""
    fastest = min(timing.median_ns for timing in timings if timing.name != CANDIDATE)
    if fastest >= DISPATCH_MATTERS_NS:
        return ()
    text = f"the fastest baseline takes {fastest} ns a call, its dispatch included; the kernel is called without one"
    return (_entry("dispatch", text),)


def _clear_loss(speedups: Sequence[Speedup]) -> bool:
    """Twice as slow as the best baseline with its whole interval: no noise of this size changes that."""
    return min(s.high_ppm for s in speedups) < PPM // 2


def _baselines(measured: Sequence[Measured]) -> tuple[str, ...]:
    return tuple(name for name in measured[0].samples if name != CANDIDATE)


def _speedup(name: str, measured: Sequence[Measured], seed: int, delta: float, times: float) -> Speedup:
    """``times``: how much longer a call on fresh values takes than one of the blocks that were compared."""
    found = statistics.pooled([one.logs()[name] for one in measured], seed)
    return Speedup(
        baseline=name,
        ratio_ppm=max(1, round(PPM * found.ratio / times)),
        low_ppm=math.floor(PPM * found.low / times),
        high_ppm=math.ceil(PPM * found.high / times),
        delta_ppm=math.ceil(PPM * delta),
    )


def _timing(name: str, measured: Sequence[Measured]) -> Timing:
    blocks = [t for one in measured for t in one.samples[name].block_ns]
    cold = [t for one in measured for t in one.samples[name].cold_ns]
    return Timing(
        name=name,
        median_ns=round(stdlib_statistics.median(blocks)),
        block_ns=tuple(round(t) for t in blocks),
        calls_per_block=measured[0].samples[name].calls,
        cold_ns=round(stdlib_statistics.median(cold)) if cold else 0,
    )


def overhead_ns(found: Sequence[float], settled: Sequence[float] = ()) -> float:
    """What a command to the candidate's process costs by itself, from commands that make no call. ``settled``: what the
    empty ones after calls took, where that is known.
    """
    most = SETTLES * stdlib_statistics.median(settled) + SETTLE_SLACK_NS if settled else OVERHEAD_MAX_NS
    return min(OVERHEAD_MAX_NS, most, stdlib_statistics.median(found)) if found else 0.0


def _unresolved(measured: Sequence[Measured], overhead: float) -> tuple[Entry, ...]:
    """A time that the way to the kernel and back hides is no time."""
    samples = [one.samples[CANDIDATE] for one in measured]
    block = stdlib_statistics.median(t * n for one in samples for t, n in zip(one.block_ns, one.lengths, strict=False))
    hidden = max(one.hidden_ns for one in measured)
    if overhead > RESOLUTION_SHARE * block:
        said = f"a whole block takes {block:.0f} ns, a command without a call {overhead:.0f} ns"
    elif block < hidden:
        said = f"the calls of a block take {block:.0f} ns at most, less than can be told beside what it takes besides"
    else:
        return ()
    return (caught(Layer.STATISTICS), _entry("resolution", said))


def _entries(found: Disagreement | None) -> tuple[Entry, ...]:
    return () if found is None else (_entry("reason", "clocks that cannot both be true"), _entry("clocks", found))


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
