"""Reading the kernel's counters of who used which core for how long. What is made of them: ``contention``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from evaluator_svc.contention import Counters, Disturbance, between
from evaluator_svc.settings import ContentionLimits

PROC, CPUS = Path("/proc"), Path("/sys/devices/system/cpu")
US, NS = 1e-6, 1e-9
WINDOW_S = 0.25
"""Over which a machine is looked at before it counts as quiet: 25 ticks of /proc/stat."""


def read(cpus: Sequence[int], *, proc: Path = PROC, system: Path = CPUS) -> Counters:
    """The counters now; ``cpus`` are the cores that something is timed on. Takes a few ms."""
    try:
        of_cores = psutil.cpu_times(percpu=True)
        busy: float | None = sum(sum(one) - one.idle - getattr(one, "iowait", 0.0) - _guests(one) for one in of_cores)
        steal: float | None = sum(one.steal for one in of_cores) if of_cores and hasattr(of_cores[0], "steal") else None
    except (OSError, RuntimeError):
        of_cores, busy, steal = [], None, None
    if busy is not None and steal is not None:
        busy -= steal
    own, processes = _family(frozenset(cpus))
    ran, waited = {}, {}
    for pid in processes:
        found = scheduled(proc / str(pid))
        if found is not None:
            ran[pid], waited[pid] = found
    return Counters(
        at_s=time.monotonic(),
        cores=max(1, len(of_cores)),
        busy_s=busy,
        own_s=own,
        steal_s=steal,
        ran_s=ran,
        waited_s=waited,
        involuntary=_involuntary(processes),
        pressure_s=pressure(proc / "pressure" / "cpu"),
        throttled=throttles(cpus, system),
        frequency_hz=frequency(cpus, system),
    )


def _guests(times: object) -> float:
    """Time of guest systems, which the kernel has in ``user`` and ``nice`` already."""
    return float(getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0))


def _family(cpus: frozenset[int]) -> tuple[float, list[int]]:
    """Processor time of this process and its descendants, and the ids of those that are bound to ``cpus``."""
    me = psutil.Process()
    total, pids = sum(me.cpu_times()[:4]), []
    for pid in descendants(me.pid):
        try:
            child = psutil.Process(pid)
            total += sum(child.cpu_times()[:4])
            if cpus.issuperset(child.cpu_affinity()):
                pids.append(child.pid)
        except psutil.Error:
            continue  # it ended: what it used is in its parent's count
    return total, pids


def descendants(pid: int, proc: Path = PROC) -> list[int]:
    """Processes below ``pid``. The kernel lists a thread's children itself, which saves reading every process' parent;
    without CONFIG_PROC_CHILDREN all are read.
    """
    try:
        lists = [file.read_text() for file in (proc / str(pid) / "task").glob("*/children")]
    except OSError:  # it, or one of its threads, has just ended
        lists = []
    if not lists:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)] if psutil.pid_exists(pid) else []
    children = [int(word) for listed in lists for word in listed.split()]
    return children + [below for child in children for below in descendants(child, proc)]


def _involuntary(pids: Sequence[int]) -> dict[int, int]:
    found = {}
    for pid in pids:
        try:
            found[pid] = psutil.Process(pid).num_ctx_switches().involuntary
        except psutil.Error:
            continue
    return found


def scheduled(process: Path) -> tuple[float, float] | None:
    """Seconds that the threads of ``/proc/<pid>`` ran, and waited in a run queue; None where the kernel keeps none."""
    ran = waited = 0.0
    try:
        for thread in (process / "task").iterdir():
            on_core, in_queue, _ = (thread / "schedstat").read_text().split()
            ran, waited = ran + int(on_core) * NS, waited + int(in_queue) * NS
    except (OSError, ValueError):
        return None
    return ran, waited


def pressure(file: Path) -> float | None:
    """Seconds in which some task waited for a core."""
    try:
        first = file.read_text().splitlines()[0].split()
        values = dict(part.split("=") for part in first[1:])
        return int(values["total"]) * US if first[0] == "some" else None
    except (OSError, IndexError, KeyError, ValueError):
        return None


def throttles(cpus: Sequence[int], system: Path) -> int | None:
    """Thermal throttling events of ``cpus``; None when any of them has no counter."""
    try:
        return sum(
            int((system / f"cpu{cpu}" / "thermal_throttle" / f"{unit}_throttle_count").read_text())
            for cpu in cpus
            for unit in ("core", "package")
        )
    except (OSError, ValueError):
        return None


def frequency(cpus: Sequence[int], system: Path) -> float | None:
    """Mean frequency of ``cpus`` in Hz; None when any of them has no cpufreq."""
    try:
        files = [system / f"cpu{cpu}" / "cpufreq" / "scaling_cur_freq" for cpu in cpus]
        return sum(1000.0 * int(file.read_text()) for file in files) / len(files) if files else None
    except (OSError, ValueError):
        return None


@dataclass(kw_only=True)
class Watch:
    """Around a measurement: ``begin`` before it, ``end`` after it."""

    cpus: Sequence[int]
    before: Counters | None = None

    async def begin(self) -> None:
        self.before = await asyncio.to_thread(read, self.cpus)

    async def end(self) -> Disturbance:
        """What happened since ``begin``."""
        assert self.before is not None, "begin first"
        return between(self.before, await asyncio.to_thread(read, self.cpus))


async def until_quiet(cpus: Sequence[int], limits: ContentionLimits, *, most_s: float) -> Disturbance:
    """Wait until nobody else uses the machine, for ``most_s`` at the longest; returns the last look."""
    until = time.monotonic() + most_s
    watch = Watch(cpus=cpus)
    while True:
        await watch.begin()
        await asyncio.sleep(WINDOW_S)  # the window that is looked at
        seen = await watch.end()
        if not seen.reasons(limits) or time.monotonic() >= until:
            return seen
