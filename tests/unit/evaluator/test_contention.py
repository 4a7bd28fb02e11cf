"""What others did while something was timed is read from the kernel's counters; what is not there is called unknown."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from evaluator_svc.contention import Counters, between
from evaluator_svc.kernel_counters import descendants, frequency, pressure, scheduled, throttles
from evaluator_svc.settings import ContentionLimits

LIMITS = ContentionLimits()
BEFORE = Counters(
    at_s=100.0,
    cores=4,
    busy_s=50.0,
    own_s=20.0,
    steal_s=1.0,
    ran_s={7: 3.0},
    waited_s={7: 0.1},
    involuntary={7: 10},
    pressure_s=5.0,
    throttled=2,
    frequency_hz=3.0e9,
)
QUIET = replace(
    BEFORE,
    at_s=101.0,
    busy_s=51.0,
    own_s=21.0,
    ran_s={7: 3.9},
    waited_s={7: 0.101},
    involuntary={7: 12},
    pressure_s=5.01,
)


def test_a_quiet_second_gives_no_reason_and_tells_every_signal():
    seen = between(BEFORE, QUIET)
    assert seen.reasons(LIMITS) == ()
    assert seen.foreign == 0.0
    assert seen.waiting == pytest.approx(0.001 / 0.901)
    assert seen.involuntary_per_s == pytest.approx(2.0)
    assert "unknown" not in seen.entry(LIMITS).value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"busy_s": 53.0}, "foreign 0.500"),
        ({"waited_s": {7: 0.3}}, "waiting"),
        ({"steal_s": 1.6}, "steal 0.150"),
        ({"throttled": 3}, "throttled 1.000"),
        ({"frequency_hz": 2.4e9}, "frequency 0.200"),
    ],
)
def test_each_signal_is_a_reason_by_itself(change, reason):
    seen = between(BEFORE, replace(QUIET, **change))
    (said,) = seen.reasons(LIMITS)
    assert said.startswith(reason)
    assert seen.entry(LIMITS).value.startswith(reason)


def test_what_the_worker_itself_computes_is_no_disturbance():
    assert between(BEFORE, replace(QUIET, busy_s=54.0, own_s=24.0)).reasons(LIMITS) == ()


def test_rounded_counters_that_differ_by_a_few_ticks_are_no_disturbance():
    short = replace(QUIET, at_s=100.02, busy_s=50.04, own_s=20.01)
    assert between(BEFORE, short).foreign == 0.0


def test_a_process_that_began_meanwhile_counts_from_its_beginning():
    seen = between(BEFORE, replace(QUIET, ran_s={7: 3.0, 8: 0.5}, waited_s={7: 0.1, 8: 0.5}))
    assert seen.waiting == pytest.approx(0.5)


def test_a_machine_without_counters_says_unknown_and_never_fine():
    bare = Counters(at_s=1.0, cores=2)
    seen = between(bare, replace(bare, at_s=2.0))
    assert seen.reasons(LIMITS) == ()
    assert seen.entry(LIMITS).value.count("unknown") == 7


def test_a_thread_that_waited_for_a_core_is_told_from_its_schedstat(tmp_path):
    for thread, text in {"7": "162726795 5821367 419\n", "9": "1000000000 2000000000 10\n"}.items():
        (tmp_path / "task" / thread).mkdir(parents=True)
        (tmp_path / "task" / thread / "schedstat").write_text(text)
    assert scheduled(tmp_path) == (pytest.approx(1.162726795), pytest.approx(2.005821367))


@pytest.mark.parametrize("text", [None, "", "1 2\n", "a b c\n"])
def test_a_schedstat_that_is_missing_or_odd_is_unknown(tmp_path, text):
    if text is not None:
        (tmp_path / "task" / "7").mkdir(parents=True)
        (tmp_path / "task" / "7" / "schedstat").write_text(text)
    assert scheduled(tmp_path) is None


PRESSURE = """some avg10=0.87 avg60=3.33 avg300=1.55 total=8833990
full avg10=0.00 avg60=0.00 avg300=0.00 total=0
"""


@pytest.mark.parametrize(
    ("text", "seconds"), [(PRESSURE, 8.83399), ("", None), ("full total=1\n", None), ("some x\n", None)]
)
def test_pressure_is_the_time_in_which_somebody_waited(tmp_path, text, seconds):
    (tmp_path / "cpu").write_text(text)
    assert pressure(tmp_path / "cpu") == (pytest.approx(seconds) if seconds is not None else None)
    assert pressure(tmp_path / "missing") is None


def cores(root, folder, files):
    for cpu in (0, 1):
        where = root / f"cpu{cpu}" / folder
        where.mkdir(parents=True)
        for name, text in files.items():
            (where / name).write_text(text)


def test_throttling_and_frequency_are_those_of_the_measured_cores(tmp_path):
    cores(tmp_path, "thermal_throttle", {"core_throttle_count": "2\n", "package_throttle_count": "1\n"})
    cores(tmp_path, "cpufreq", {"scaling_cur_freq": "2400000\n"})
    assert throttles((0, 1), tmp_path) == 6
    assert frequency((1,), tmp_path) == pytest.approx(2.4e9)


def test_a_core_without_these_files_makes_them_unknown(tmp_path):
    cores(tmp_path, "thermal_throttle", {"core_throttle_count": "2\n"})
    assert throttles((0,), tmp_path) is None
    assert frequency((0,), tmp_path) is None


def test_descendants_are_found_through_the_threads_that_started_them(tmp_path):
    for pid, threads in {7: {7: "8 9", 70: "10"}, 8: {8: ""}, 9: {9: "11"}, 10: {10: ""}, 11: {11: ""}}.items():
        for thread, children in threads.items():
            (tmp_path / str(pid) / "task" / str(thread)).mkdir(parents=True)
            (tmp_path / str(pid) / "task" / str(thread) / "children").write_text(children)
    assert sorted(descendants(7, tmp_path)) == [8, 9, 10, 11]


def test_descendants_are_found_where_the_kernel_lists_no_children(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid in descendants(os.getpid(), tmp_path)
        finally:
            child.kill()
