"""Who else used the machine while something was timed: from two readings of the kernel's counters (pure).

A signal that this machine does not have is None and is called unknown, never fine: the evidence names every signal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from evaluator_svc.settings import ContentionLimits
from shared.events import PPM, Entry

TICK_S = 0.01
"""What /proc/stat counts in (USER_HZ)."""
TICKS_OF_NOISE = 3
"""Foreign time below this many ticks is how two sets of rounded counters differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """One reading. Times in seconds since some beginning; None where the kernel does not tell.

    ``busy_s``, ``steal_s``: of all cores together. ``own_s``: of this process and its descendants, ended ones included.
    ``ran_s``, ``waited_s``: of threads of descendants bound to the measured cores, on a core and in a run queue, by
    process.
    """

    at_s: float
    cores: int
    busy_s: float | None = None
    own_s: float | None = None
    steal_s: float | None = None
    ran_s: dict[int, float] = field(default_factory=dict)
    waited_s: dict[int, float] = field(default_factory=dict)
    involuntary: dict[int, int] = field(default_factory=dict)
    """Context switches that a process did not ask for."""
    pressure_s: float | None = None
    """In which at least one task waited for a core (``/proc/pressure/cpu``, some)."""
    throttled: int | None = None
    """Times a measured core was slowed down for its temperature."""
    frequency_hz: float | None = None
    """Mean of the measured cores, now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """What happened between two readings; shares are of the time between them. None: unknown here."""

    foreign: float | None
    """Share of the machine's core time that other programs used."""
    waiting: float | None
    """Share of their time that processes bound to the measured cores spent waiting for one."""
    steal: float | None
    """Share of core time that a hypervisor gave to others."""
    pressure: float | None
    throttled: float | None
    frequency: float | None
    """Relative change of the measured cores' frequency."""
    involuntary_per_s: float | None

    def reasons(self, limits: ContentionLimits) -> tuple[str, ...]:
        """Why a time taken meanwhile says little; empty when no signal there is says so."""
        return tuple(
            f"{name} {value:.3f}, limit {limit:g}"
            for name, value, limit in (
                ("foreign", self.foreign, limits.foreign_ppm / PPM),
                ("waiting", self.waiting, limits.waiting_ppm / PPM),
                ("steal", self.steal, limits.steal_ppm / PPM),
                ("throttled", self.throttled, 0),
                ("frequency", abs(self.frequency) if self.frequency is not None else None, limits.frequency_ppm / PPM),
            )
            if value is not None and value > limit
        )

    def __str__(self) -> str:
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return ", ".join(f"{name} {'unknown' if value is None else f'{value:.3g}'}" for name, value in values)

    def entry(self, limits: ContentionLimits) -> Entry:
        """The evidence: the reasons first, then every signal."""
        return Entry(name="contention", value="; ".join((*self.reasons(limits), str(self))))


def between(before: Counters, after: Counters) -> Disturbance:
    """What happened from ``before`` to ``after``."""
    wall = max(after.at_s - before.at_s, 1e-9)
    cores = wall * after.cores
    ran, waited = _grown(before.ran_s, after.ran_s), _grown(before.waited_s, after.waited_s)
    switched = _grown(before.involuntary, after.involuntary)
    return Disturbance(
        foreign=_foreign(before, after, cores),
        waiting=waited / (ran + waited) if ran + waited > 0 else None,
        steal=_share(before.steal_s, after.steal_s, cores),
        pressure=_share(before.pressure_s, after.pressure_s, wall),
        throttled=_difference(before.throttled, after.throttled),
        frequency=_change(before.frequency_hz, after.frequency_hz),
        involuntary_per_s=switched / wall if after.involuntary else None,
    )


def _foreign(before: Counters, after: Counters, cores: float) -> float | None:
    busy, own = _difference(before.busy_s, after.busy_s), _difference(before.own_s, after.own_s)
    if busy is None or own is None:
        return None
    others = busy - own
    return others / cores if others > TICKS_OF_NOISE * TICK_S else 0.0


def _grown(before: dict[int, float] | dict[int, int], after: dict[int, float] | dict[int, int]) -> float:
    """Sum over processes; one that began meanwhile counts whole, one that ended meanwhile not at all."""
    return float(sum(max(0.0, value - before.get(pid, 0)) for pid, value in after.items()))


def _share(before: float | None, after: float | None, whole: float) -> float | None:
    grown = _difference(before, after)
    return None if grown is None else max(0.0, grown) / whole


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _change(before: float | None, after: float | None) -> float | None:
    return None if not before or not after else after / before - 1.0
