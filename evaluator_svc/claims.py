"""From block times to what may be claimed: speedups with intervals, or why this moment allows none (pure)."""

from __future__ import annotations

import math
import statistics as stdlib_statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc import statistics
from evaluator_svc.layers import Layer, caught
from evaluator_svc.roofline import Floors, binding, implausible
from evaluator_svc.settings import TimingSettings
from evaluator_svc.timing import CANDIDATE, Measured
from shared.events import PPM, Entry, Speedup, Status, Timing, Trust

FRESH_SLACK_NS = 300_000
FRESH_SHARE = 0.5
FRESH_TRAFFICS = 2.0
"""A first call on fresh values may take this many times the compulsory traffic from memory longer than a repeated one.
More means that repeated calls do not do the work: they remember."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """What no honest time can beat: floors of all traffic and of the outputs' alone, and all traffic at memory's own
    rate (ns, 0 unknown).
    """

    floors: Floors
    written: Floors
    memory_traffic_ns: float


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
    delta: float = statistics.DELTA_UNKNOWN,
) -> Claim:
    """The claim that ``measured`` (one per fresh process) supports; ``delta`` is the worker's noise floor."""
    timings = tuple(_timing(name, measured) for name in (CANDIDATE, *_baselines(measured)))
    median = float(timings[0].median_ns)

    fastest = min(one.samples[CANDIDATE].median_ns for one in measured)
    trusted = min(one.samples[name].median_ns for one in measured for name in _baselines(measured))
    floors = binding(physics.floors, physics.written, measured_ns=median, trusted_ns=trusted)
    disagreement = _clock_disagreement(measured, settings)

    def done(status: Status, trust: Trust, evidence: tuple[Entry, ...], speedups: tuple[Speedup, ...] = ()) -> Claim:
        return Claim(
            status=status,
            trust=trust,
            timings=timings,
            speedups=speedups,
            evidence=evidence,
            median_ns=median,
            floors=floors,
            clocks_agree=not disagreement,
        )

    if implausible(floors, fastest, settings.implausible_ppm):
        evidence = (
            _entry("reason", "faster than the machine can move the operator's data"),
            _entry("measured_ns", round(fastest)),
            _entry("floor_ns", round(floors.memory_ns)),
        )
        return done(Status.CHEAT, Trust.NONE, evidence)
    remembered = _remembers(measured, physics)
    if remembered:
        return done(Status.CHEAT, Trust.NONE, remembered)
    speedups = tuple(_speedup(name, measured, seed, delta) for name in _baselines(measured))
    reasons = noisy(measured, settings, seed)
    if reasons and not _clear_loss(speedups):
        return done(Status.NOISY, Trust.NONE, (caught(Layer.STATISTICS), *reasons))
    trust = Trust.L2 if disagreement or reasons else Trust.L3
    verified = _entry("timed_blocks_verified", sum(one.verified for one in measured))
    stopped = _entry("stopped", ", ".join(one.decision.value for one in measured if one.decision is not None))
    told = (verified, stopped, *_dispatch(timings), *disagreement, *reasons, *_watched(measured, reasons))
    return done(Status.PASSED, trust, told, speedups)


def _watched(measured: Sequence[Measured], reasons: Sequence[Entry]) -> tuple[Entry, ...]:
    """What the watch saw where it is not among the reasons already: which signals there were is part of a claim."""
    return tuple(entry for one in measured for entry in one.watched if entry not in reasons)[:1]


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


def _speedup(name: str, measured: Sequence[Measured], seed: int, delta: float) -> Speedup:
    found = statistics.pooled([one.logs()[name] for one in measured], seed)
    return Speedup(
        baseline=name,
        ratio_ppm=round(PPM * found.ratio),
        low_ppm=math.floor(PPM * found.low),
        high_ppm=math.ceil(PPM * found.high),
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


def _remembers(measured: Sequence[Measured], physics: Physics) -> tuple[Entry, ...]:
    """Whether calls on values already seen are cheaper than caches explain."""
    fresh = stdlib_statistics.median([t for one in measured for t in one.samples[CANDIDATE].fresh_ns])
    warm = stdlib_statistics.median([t for one in measured for t in one.samples[CANDIDATE].block_ns])
    control = max(
        stdlib_statistics.median([t for one in measured for t in one.samples[name].fresh_ns])
        - stdlib_statistics.median([t for one in measured for t in one.samples[name].block_ns])
        for name in _baselines(measured)
    )
    allowed = FRESH_TRAFFICS * physics.memory_traffic_ns + FRESH_SHARE * warm + FRESH_SLACK_NS + max(0.0, control)
    if fresh - warm <= allowed:
        return ()
    return (
        _entry("reason", "calls on values already seen skip work that calls on fresh values do"),
        _entry("fresh_call_ns", round(fresh)),
        _entry("repeated_call_ns", round(warm)),
        _entry("allowed_difference_ns", round(allowed)),
    )


def _clock_disagreement(measured: Sequence[Measured], settings: TimingSettings) -> tuple[Entry, ...]:
    """The runner's clock never counts; but a runner whose clock disagrees is not what it seems."""
    # The block at the first quartile of excess: a busy machine delays some answers, a forged clock is off in all.
    clocks = sorted((pair for one in measured for pair in one.clocks), key=lambda pair: pair[0] - pair[1])
    parent, own = clocks[len(clocks) // 4]
    excess = parent - own
    if 0 <= excess <= parent * settings.clock_slack_ppm / PPM + settings.clock_slack_ns:
        return ()
    return (
        _entry("clocks", f"controller {parent:.0f} ns, runner {own:.0f} ns per block: they disagree, so trust is L2"),
    )


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
