"""Short constructors of events and envelopes."""

from __future__ import annotations

from shared import envelopes
from shared.clock import ManualClock
from shared.events import (
    Entry,
    Envelope,
    Evaluation,
    EvaluationCompleted,
    Event,
    KernelRef,
    Purpose,
    SearchCancelled,
    Speedup,
    Status,
    Timing,
    Trust,
)


def an_event(search_id: str = "s1", reason: str = "asked to") -> SearchCancelled:
    return SearchCancelled(search_id=search_id, reason=reason)


def an_envelope(event: Event | None = None, n: int = 0) -> Envelope:
    return envelopes.envelope(event or an_event(), cause_id="cause", n=n, source="/test", clock=ManualClock(7))


def a_measurement() -> EvaluationCompleted:
    """As big as a real one."""
    timings = tuple(Timing(name=name, median_ns=1_000, block_ns=tuple(range(30))) for name in ("ours", "eager", "jit"))
    return EvaluationCompleted(
        search_id="s1",
        evaluation_id="e1",
        candidate_id="c1",
        kernel_id="k1",
        chip="cpu-x86_64",
        purpose=Purpose.SEARCH,
        evaluation=Evaluation(
            status=Status.PASSED,
            trust=Trust.L3,
            timings=timings,
            evidence=tuple(Entry(name=f"check{index}", value="1e-7") for index in range(10)),
            speedups=(Speedup(baseline="eager", ratio_ppm=2_000_000, low_ppm=1_900_000, high_ppm=2_100_000),),
        ),
    )


def a_kernel() -> KernelRef:
    return KernelRef(kernel_id="k1", language="cpp", source_hash="h1")
