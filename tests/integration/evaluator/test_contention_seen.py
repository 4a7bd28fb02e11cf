"""A burner and a compiler beside a measurement are seen in the kernel's counters of this very machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import psutil
import pytest

from evaluator_svc.kernel_counters import Watch, read, until_quiet
from evaluator_svc.settings import ContentionLimits
from tests.bench.compilers import compilers

ALL = tuple(sorted(os.sched_getaffinity(0)))
BURN = "while True: pass"


@pytest.fixture
def stranger():
    """A burner that is no descendant of this process."""
    started = subprocess.run(
        ["sh", "-c", f"setsid {sys.executable} -c '{BURN}' >/dev/null 2>&1 & echo $!"],
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(started.stdout)
    yield pid
    os.kill(pid, 9)


def watched(seconds=0.6, during=lambda: None):
    async def go():
        watch = Watch(cpus=ALL)
        await watch.begin()
        during()
        await asyncio.sleep(seconds)
        return await watch.end()

    return asyncio.run(go())


@pytest.mark.serial
def test_a_strangers_computing_is_foreign(stranger):
    seen = watched()
    assert seen.foreign is not None
    assert seen.foreign > 0.5 / len(ALL), seen
    assert any(reason.startswith("foreign") for reason in seen.reasons(ContentionLimits(foreign_ppm=50_000)))


def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_ones_own_computing_is_counted_as_ones_own_that_of_ended_children_included():
    before = read(ALL)
    burn(0.3)
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    after = read(ALL)
    assert after.own_s - before.own_s > 0.5


def test_a_strangers_computing_is_not_counted_as_ones_own(stranger):
    before = read(ALL)
    until = psutil.Process(stranger).cpu_times().user + 0.3
    while psutil.Process(stranger).cpu_times().user < until:
        time.sleep(0.01)
    after = read(ALL)
    assert (after.busy_s - before.busy_s) - (after.own_s - before.own_s) > 0.2


@pytest.mark.serial
def test_processes_that_have_to_share_a_core_are_seen_to_wait():
    running = [subprocess.Popen(["taskset", "-c", str(ALL[-1]), sys.executable, "-c", BURN]) for _ in range(2)]
    try:
        seen = watched()
    finally:
        for one in running:
            one.kill()
            one.wait()
    if seen.waiting is None:
        pytest.skip("this kernel keeps no schedstat: the signal is unknown here")
    assert seen.waiting > 0.3, seen


@pytest.mark.serial
def test_waiting_for_quiet_ends_at_its_limit_beside_compilers():
    with compilers(len(ALL)):
        begin = time.monotonic()
        seen = asyncio.run(until_quiet(ALL, ContentionLimits(waiting_ppm=10_000), most_s=0.5))
        took = time.monotonic() - begin
    assert seen.waiting is None or seen.pressure is None or seen.pressure > 0
    assert took < 30.0
