"""Floors are lower bounds: never above what a cache-resident kernel could do, and silent where peaks are unknown."""

from __future__ import annotations

import pytest

from evaluator_svc.roofline import Floors, Peaks, binding, floors, implausible, roofline

KIB, MIB, GB = 1 << 10, 1 << 20, 1e9
PEAKS = Peaks(
    bandwidth={"L1": 200 * GB, "L2": 100 * GB, "L3": 50 * GB, "memory": 20 * GB},
    capacity={"L1": 32 * KIB, "L2": MIB, "L3": 32 * MIB},
    flops=100 * GB,
)


def test_a_working_set_in_the_first_level_is_served_at_its_rate():
    found = floors(PEAKS, bytes_min=20_000, flops_min=None)
    assert found.memory_ns == pytest.approx(100)
    assert found.level == "L1"


def test_traffic_beyond_a_cache_comes_from_further_out():
    found = floors(PEAKS, bytes_min=16 * MIB, flops_min=None)
    inner = 32 * KIB / 200 + (MIB - 32 * KIB) / 100
    assert found.memory_ns == pytest.approx(inner + 15 * MIB / 50)
    assert found.level == "L3"


def test_a_larger_working_set_never_has_a_lower_floor():
    times = [floors(PEAKS, bytes_min=size, flops_min=None).memory_ns for size in range(1024, 128 * MIB, 999_999)]
    assert times == sorted(times)


def test_what_does_not_fit_any_cache_reaches_memory():
    found = floors(PEAKS, bytes_min=320 * MIB, flops_min=None)
    assert found.level == "memory"
    assert found.memory_ns > 288 * MIB / 20


def test_arithmetic_is_the_floor_when_it_takes_longer():
    found = floors(PEAKS, bytes_min=3 * MIB, flops_min=268_435_456)
    assert found.floor_ns == found.compute_ns == pytest.approx(2_684_354.56)


def test_unknown_peaks_and_operations_raise_no_floor():
    assert floors(Peaks(), bytes_min=MIB, flops_min=10**9).floor_ns == 0
    assert floors(PEAKS, bytes_min=MIB, flops_min=None).compute_ns == 0
    line = roofline(floors(Peaks(), bytes_min=MIB, flops_min=None), bytes_min=MIB, flops_min=None, measured_ns=5.0)
    assert (line.floor_ns, line.fraction_ppm, line.flops_min) == (0, 0, 0)


def test_what_a_trusted_baseline_or_an_honest_kernel_beats_is_no_bound():
    every = Floors(memory_ns=100.0, compute_ns=50.0, level="L3")
    written = Floors(memory_ns=10.0, compute_ns=0.0, level="L2")
    assert binding(every, written, measured_ns=60, trusted_ns=200) == every
    assert binding(every, written, measured_ns=60, trusted_ns=80).memory_ns == written.memory_ns  # a gather
    assert (
        binding(every, written, measured_ns=40, trusted_ns=200).compute_ns == 0
    )  # fewer operations than the reference


def test_only_times_clearly_under_the_floor_are_implausible():
    bounds = floors(PEAKS, bytes_min=16 * MIB, flops_min=None)
    assert implausible(bounds, 0.5 * bounds.floor_ns, 900_000)
    assert not implausible(bounds, 0.95 * bounds.floor_ns, 900_000)
    assert not implausible(floors(Peaks(), bytes_min=MIB, flops_min=None), 1.0, 900_000)


def test_the_fraction_is_floor_over_time():
    bounds = floors(PEAKS, bytes_min=20_000, flops_min=None)
    line = roofline(bounds, bytes_min=20_000, flops_min=None, measured_ns=400.0)
    assert (line.floor_ns, line.fraction_ppm) == (100, 250_000)
