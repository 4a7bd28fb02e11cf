"""Where a measured time stands against what the machine can do (pure).

The floor is the larger of compulsory traffic over bandwidth and compulsory arithmetic over peak (S. Williams,
A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009), with peaks measured by this worker's calibration. Unknown
peaks or operation counts stay unknown: they raise no floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.events import PPM, Roofline

LEVELS = ("L1", "L2", "L3")
MEMORY = "memory"
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """Measured peaks. ``bandwidth`` in bytes/s per level of ``LEVELS`` and ``memory``; ``capacity`` in bytes per level;
    ``flops`` in operations/s (a multiply-add is two), 0 when unknown.
    """

    bandwidth: Mapping[str, float] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    flops: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Lower bounds in ns; 0 means unknown. ``level`` is the slowest one the traffic must reach."""

    memory_ns: float
    compute_ns: float
    level: str

    @property
    def floor_ns(self) -> float:
        return max(self.memory_ns, self.compute_ns)


UNKNOWN = Floors(memory_ns=0.0, compute_ns=0.0, level="")


def floors(peaks: Peaks, *, bytes_min: int, flops_min: int | None) -> Floors:
    """The floors of a kernel that must move ``bytes_min`` and do ``flops_min`` operations (None: unknown).

    Traffic beyond a cache must come from further out; at most a cache's capacity is served at its own rate. So the
    bound holds for a kernel that keeps in each cache as much as fits from one call to the next.
    """
    left, total, level, inner = float(bytes_min), 0.0, "", 0
    for name in (*LEVELS, MEMORY):
        rate = peaks.bandwidth.get(name, 0.0)
        if rate <= 0:
            continue
        capacity = peaks.capacity.get(name, 0)
        served = left if name == MEMORY else min(left, float(max(0, capacity - inner)))
        total += served / rate * NS_PER_S
        left, inner = left - served, max(inner, capacity)
        level = name if served > 0 else level
        if left <= 0:
            break
    compute = flops_min / peaks.flops * NS_PER_S if flops_min and peaks.flops > 0 else 0.0
    return Floors(memory_ns=total if left <= 0 else 0.0, compute_ns=compute, level=level)


def roofline(bounds: Floors, *, bytes_min: int, flops_min: int | None, measured_ns: float) -> Roofline:
    """The event's form: zeros mean unknown."""
    floor = bounds.floor_ns
    return Roofline(
        bytes_min=bytes_min,
        flops_min=flops_min or 0,
        floor_ns=round(floor),
        fraction_ppm=round(PPM * floor / measured_ns) if floor > 0 and measured_ns > 0 else 0,
    )


def binding(bounds: Floors, written: Floors, *, measured_ns: float, trusted_ns: float) -> Floors:
    """``bounds`` without what this operator shows to be no bound at all.

    A reference may read a part of its inputs only (a gather): then a trusted baseline (``trusted_ns``) beats the
    traffic of all of them, and only ``written``, the traffic of the outputs, is compulsory. And a kernel may need fewer
    operations than the reference does (reassociation, symmetry), so a beaten operation count bounds nothing.
    """
    memory = bounds if trusted_ns >= bounds.memory_ns else written
    compute = bounds.compute_ns if measured_ns >= bounds.compute_ns else 0.0
    return Floors(memory_ns=memory.memory_ns, compute_ns=compute, level=memory.level)


def implausible(bounds: Floors, measured_ns: float, share_ppm: int) -> bool:
    """Whether a time lies so far under the memory floor that it cannot be a measurement of the work."""
    return 0 < measured_ns < bounds.memory_ns * share_ppm / PPM
