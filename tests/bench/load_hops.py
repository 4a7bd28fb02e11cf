"""How long a record takes from its publication to the start of its handler, while the system is moderately busy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from load_searches import Load, Wish, follow_all
from load_system import CHIP, Histogram, System, cpu_between

from evaluator_svc.intake import group_of
from shared import topics

HOPS = {
    "facts → search": ("hop_delay_seconds", topics.FACTS, "search"),
    "expansion requests → synthesizer": ("hop_delay_seconds", topics.SYNTHESIS_REQUESTS, "synthesizer"),
    "evaluation requests → a worker's intake": (
        "hop_delay_seconds",
        topics.evaluation_requests(CHIP),
        group_of(CHIP),
    ),
    "evaluation requests → claim by a free slot": ("queue_wait_seconds", CHIP),
}
"""Metric and label values of each hop."""
LABELS = {"hop_delay_seconds": ("topic", "group"), "queue_wait_seconds": ("chip",)}
SEARCHES = 6
MEAN_S = 1.9
"""Of ``load_crowd.DURATIONS``."""


@dataclass(frozen=True, kw_only=True)
class Hops:
    """Delays by hop under a load of ``rate`` evaluations per second, which took ``cores`` of the machine."""

    delays: dict[str, Histogram]
    rate: float
    cores: float


def measure(system: System, load: Load, seconds: float, tell: Callable[[str], None]) -> Hops:
    """Searches that begin one after the other and mostly wait: each has two evaluations at work, and there are far more
    slots than that. A search before them has the operator captured and planned, which is work, not delay.
    """
    asyncio.run(follow_all(load, [Wish(evaluations=4, at_once=1, each=2)], spread_s=0.0))
    wishes = [Wish(evaluations=max(4, round(2 * seconds / MEAN_S)), at_once=1, each=2)] * SEARCHES
    before, spent = _delays(system), system.usage()
    found = asyncio.run(follow_all(load, wishes, spread_s=seconds / 2))
    cpu_s = sum(cpu_between(spent, system.usage()).values())
    begin_s, end_s = min(each.submitted_s for each in found), max(each.ended_s for each in found)
    delays = {hop: after.minus(before[hop]) for hop, after in _delays(system).items()}
    evaluations = sum(len(each.evaluated) for each in found)
    hops = Hops(delays=delays, rate=evaluations / (end_s - begin_s), cores=cpu_s / (end_s - begin_s))
    for hop, delay in delays.items():
        tell(f"{hop}: p50 {1000 * delay.quantile(0.5):.1f} ms, p99 {1000 * delay.quantile(0.99):.1f} ms")
    return hops


def _delays(system: System) -> dict[str, Histogram]:
    found = {name: system.histograms(name, *labels) for name, labels in LABELS.items()}
    return {hop: found[name].get(tuple(labels), Histogram()) for hop, (name, *labels) in HOPS.items()}
