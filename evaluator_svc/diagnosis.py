"""Why a kernel is as slow as it is (pure): roofline position first, then what its innermost loops look like."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator_svc.loops import LoopFacts, Throughput
from evaluator_svc.roofline import Floors
from shared.events import Bound, Diagnosis, Entry

NEAR = 0.6
"""A resource used to this share of its peak is what limits (KernelAgent's rule for GPUs uses the same figure)."""
OVERHEAD_NS = 20_000
"""Below this, calling and starting threads is a visible part of a call."""
SCALAR = 0.5
"""Under this share of packed instructions in its hot loops a kernel counts as scalar."""
DEPENDENT = 1.5
"""Loops whose iterations take this many times what the ports need wait for results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Facts about the innermost loops. ``reason`` says why a tool gave none; empty when it did."""

    loops: tuple[LoopFacts, ...] = ()
    loops_reason: str = ""
    throughputs: tuple[Throughput, ...] = ()
    throughputs_reason: str = ""


def diagnose(floors: Floors, measured_ns: float, profile: Profile) -> Diagnosis:
    """The class, its evidence, and one line that names what to try."""
    evidence = [*against_floors(floors, measured_ns), *_loops(profile), *_throughputs(profile)]
    bound, summary = _classify(floors, measured_ns, profile)
    return Diagnosis(bound=bound, evidence=tuple(evidence), summary=summary)


def _classify(floors: Floors, measured_ns: float, profile: Profile) -> tuple[Bound, str]:
    memory, compute = _share(floors.memory_ns, measured_ns), _share(floors.compute_ns, measured_ns)
    if max(memory, compute) >= NEAR and memory >= compute:
        return Bound.MEMORY, (
            f"memory-bound: {memory:.0%} of what {floors.level} can deliver; fewer passes over the data, "
            "fusion or streaming stores are what is left"
        )
    if compute >= NEAR:
        return Bound.COMPUTE, (
            f"compute-bound: {compute:.0%} of peak multiply-add rate; better register blocking is what is left"
        )
    if measured_ns < OVERHEAD_NS:
        return Bound.LAUNCH, "overhead-bound: a call is so short that its start shows; drop threads and setup"
    called = [name for loop in profile.loops for name in loop.calls]
    if called:
        return Bound.COMPUTE, (
            f"compute-bound: a hot loop calls {called[0]}, which saves and restores registers each time; inline an "
            "approximation"
        )
    spilled = sum(loop.spills for loop in profile.loops)
    if spilled:
        return Bound.LATENCY, f"register spills ({spilled}) in hot loops; unroll less or use a smaller tile"
    if profile.loops and _packed(profile.loops) < SCALAR:
        return Bound.COMPUTE, (
            f"compute-bound in scalar code ({_packed(profile.loops):.0%} packed instructions in hot loops); vectorise"
        )
    waiting = [t for t in profile.throughputs if t.cycles > DEPENDENT * t.port_cycles]
    if waiting:
        return Bound.LATENCY, (
            f"latency-bound: a hot loop takes {waiting[0].cycles:.1f} cycles where ports need "
            f"{waiting[0].port_cycles:.1f}; more independent accumulators or unrolling"
        )
    if memory >= compute and memory >= NEAR / 2:
        return Bound.MEMORY, (
            f"partly memory-bound ({memory:.0%} of {floors.level}'s rate); larger tiles, prefetch or fewer passes"
        )
    return Bound.COMPUTE, (
        "compute-bound: neither memory nor the multiply-add rate is near its limit, so instructions are; cheaper "
        "approximations, wider vectors or less redundant work"
    )


def _share(floor_ns: float, measured_ns: float) -> float:
    return floor_ns / measured_ns if measured_ns > 0 else 0.0


def _packed(loops: tuple[LoopFacts, ...]) -> float:
    packed, scalar = sum(loop.packed for loop in loops), sum(loop.scalar for loop in loops)
    return packed / (packed + scalar) if packed + scalar else 0.0


def against_floors(floors: Floors, measured_ns: float) -> list[Entry]:
    """How far the time is from what the machine allows; reports draw their roofline from these."""
    entries = [_entry("measured_ns", f"{measured_ns:.0f}")]
    if floors.memory_ns > 0:
        share = _share(floors.memory_ns, measured_ns)
        entries.append(_entry("memory_floor_ns", f"{floors.memory_ns:.0f} ({share:.0%}, reaches {floors.level})"))
    else:
        entries.append(_entry("memory_floor_ns", "unavailable: bandwidth not measured"))
    if floors.compute_ns > 0:
        share = _share(floors.compute_ns, measured_ns)
        entries.append(_entry("compute_floor_ns", f"{floors.compute_ns:.0f} ({share:.0%})"))
    else:
        entries.append(_entry("compute_floor_ns", "unavailable: the operator's operations are not counted"))
    return entries


def _loops(profile: Profile) -> list[Entry]:
    if profile.loops_reason:
        return [_entry("hot_loops", f"unavailable: {profile.loops_reason}")]
    widest = max((loop.vector_bits for loop in profile.loops), default=0)
    return [
        _entry("hot_loops", len(profile.loops)),
        _entry("vector_ratio", f"{_packed(profile.loops):.2f}"),
        _entry("vector_bits", widest),
        _entry("spills", sum(loop.spills for loop in profile.loops)),
        _entry("calls", ", ".join(dict.fromkeys(name for loop in profile.loops for name in loop.calls)) or "none"),
    ]


def _throughputs(profile: Profile) -> list[Entry]:
    if profile.throughputs_reason:
        return [_entry("llvm_mca", f"unavailable: {profile.throughputs_reason}")]
    return [
        _entry("llvm_mca", f"{t.loop}: {t.cycles:.1f} cycles an iteration, ports need {t.port_cycles:.1f}, as {t.cpu}")
        for t in profile.throughputs
    ]


def _entry(name: str, value: object) -> Entry:
    return Entry(name=name, value=str(value))
