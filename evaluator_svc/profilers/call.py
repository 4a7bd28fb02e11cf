"""One call of a kernel as a profiler saw it: its launches, and what they come to together (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator_svc.profilers.counters import Counters
from evaluator_svc.roofline import UNKNOWN, Floors


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a kernel: its launches in order, and what is known of the call itself.

    ``measured_ns``: the time of a call by the clock of record. ``bytes_min``: what must be moved, 0 for unknown.
    ``complete``: every launch of the call is among ``kernels``.
    """

    kernels: tuple[Counters, ...]
    measured_ns: float = 0.0
    bytes_min: int = 0
    floors: Floors = UNKNOWN
    complete: bool = True

    @property
    def main(self) -> Counters:
        """The launch that takes longest; the first where no time is told."""
        return max(self.kernels, key=lambda kernel: kernel.duration_ns or 0.0)

    @property
    def kernels_ns(self) -> float | None:
        """All launches together; None where one's time is not told, or launches are missing."""
        times = [kernel.duration_ns for kernel in self.kernels if kernel.duration_ns is not None]
        return sum(times) if self.complete and len(times) == len(self.kernels) else None

    @property
    def dram_bytes(self) -> float | None:
        moved = [kernel.dram_bytes for kernel in self.kernels]
        told = [bytes_ for bytes_ in moved if bytes_ is not None]
        return sum(told) if self.complete and len(told) == len(moved) else None
