"""Several workloads as one number: the geometric mean of their speedups, or why there is none (pure).

The mean of ratios to pick is the geometric one: it does not depend on which of the two times is the base (Fleming and
Wallace, CACM 29(3), 1986). One workload that failed, or whose time no machine could reach, spoils it: a mean over the
rest would reward a kernel for not solving the hard one. Floors are checked per workload, before: a kernel under its
speed-of-light floor has not PASSED.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from shared.events import PPM, Evaluation, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """``speedup`` is over the faster baseline of each workload; None with ``reason``."""

    speedup: float | None = None
    reason: str = ""


def geometric_mean(evaluations: Mapping[str, Evaluation], baseline: str = "best") -> Aggregate:
    """Over all of ``evaluations`` (by workload), which is at least one."""
    logs = []
    for name, evaluation in evaluations.items():
        if evaluation.status is not Status.PASSED:
            return Aggregate(reason=f"workload {name} is {evaluation.status.value}")
        speedup = evaluation.speedup(baseline)
        if speedup is None:
            return Aggregate(reason=f"workload {name} was not timed")
        line = evaluation.roofline
        times = [timing.median_ns for timing in evaluation.timings if timing.name == "candidate"]
        if line.floor_ns and times and times[0] < line.floor_ns:
            return Aggregate(reason=f"workload {name} took less than its floor of {line.floor_ns / 1e3:.1f} µs")
        logs.append(math.log(speedup.ratio_ppm / PPM))
    return Aggregate(speedup=math.exp(math.fsum(logs) / len(logs)))
