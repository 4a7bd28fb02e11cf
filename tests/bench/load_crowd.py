"""64 workers and 200 searches at the same time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from load_searches import Load, Wish, follow_all, verified
from load_system import MIB, Durations, System, Usage, cpu_between

PROCESSES, SLOTS, SEARCHES = 8, 8, 200
SESSION_S = 10.0
"""After which a silent member of a consumer group counts as dead: the machine is meant to be out of breath."""
DURATIONS = Durations(median_s=1.2, longest_s=12.0)
WISH = Wish(evaluations=6, at_once=1, each=2)


@dataclass(frozen=True, kw_only=True)
class Crowd:
    searches: int
    evaluations: int
    seconds: float
    outcomes: Mapping[str, int]
    verified: int
    workers: int
    processes: int
    usage: Usage
    cpu_s: Mapping[str, float]
    trouble: tuple[str, ...]

    @property
    def memory_mib(self) -> float:
        return sum(self.usage.own_bytes.values()) / MIB

    @property
    def cores(self) -> float:
        return sum(self.cpu_s.values()) / self.seconds


def measure(system: System, load: Load, searches: int, tell: Callable[[str], None]) -> Crowd:
    """Submits all at once, follows all, then replays every journal."""
    before = system.usage()
    found = asyncio.run(follow_all(load, [WISH] * searches))
    after = system.usage()
    begin_s, end_s = min(each.submitted_s for each in found), max(each.ended_s for each in found)
    evaluated = [each for search in found for each in search.evaluated]
    crowd = Crowd(
        searches=searches,
        evaluations=len(evaluated),
        seconds=end_s - begin_s,
        outcomes=Counter(each.outcome for each in found),
        verified=asyncio.run(verified(system, [each.search_id for each in found])),
        workers=PROCESSES * SLOTS,
        processes=len({each.worker for each in evaluated}),
        usage=after,
        cpu_s=cpu_between(before, after),
        trouble=tuple(system.trouble()),
    )
    tell(f"{searches} searches, {crowd.evaluations} evaluations in {crowd.seconds:.0f} s: {dict(crowd.outcomes)}")
    tell(f"{crowd.verified} verified, {len(crowd.trouble)} errors logged, {crowd.cores:.2f} cores")
    for line in crowd.trouble:
        tell(line)
    return crowd
