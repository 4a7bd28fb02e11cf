"""What is kept of a GPU's peaks, and for which device. What measuring them would give is made up here."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace

import pytest

from evaluator_svc import gpu_calibration, nvidia
from evaluator_svc.calibration import VALID_S
from evaluator_svc.nvidia import Gpu
from evaluator_svc.roofline import MEMORY
from shared.errors import Fatal

DEVICE = Gpu(
    uuid="GPU-1b2c",
    name="NVIDIA H200",
    driver="580.159.04",
    memory_used=512,
    clock=1980,
    clock_max=1980,
    temperature=33,
    throttled=False,
)
MEASURED = {"memory": 4.0e12, "L2": 8.0e12, "L2_bytes": 60 << 20, "cold": {"16777216": 3.9e12}}


@pytest.fixture
def device(monkeypatch):
    """A driver that answers, and a count of the measurements, each of which gives what ``says`` holds."""

    class Device:
        measurements = 0
        says = MEASURED

    async def measure():
        Device.measurements += 1
        return dict(Device.says)

    monkeypatch.setattr(nvidia, "ask", lambda: DEVICE)
    monkeypatch.setattr(nvidia, "uuid", lambda: DEVICE.uuid)
    monkeypatch.setattr(gpu_calibration, "_measure", measure)
    return Device


def calibrated(cache, **how):
    return asyncio.run(gpu_calibration.calibrate(cache, **how))


def test_peaks_are_measured_once_and_then_remembered(device, tmp_path):
    first, second = calibrated(tmp_path), calibrated(tmp_path)
    assert first.peaks.bandwidth == second.peaks.bandwidth == {"L2": 8.0e12, MEMORY: 4.0e12}
    assert first.peaks.capacity == {"L2": 60 << 20}
    assert device.measurements == 1


def test_no_count_of_operations_is_held_against_a_kernel(device, tmp_path):
    assert calibrated(tmp_path).peaks.flops == 0.0


def test_afresh_keeps_the_better_of_two_measurements_of_each_peak(device, tmp_path):
    calibrated(tmp_path)
    device.says = {**MEASURED, "memory": 3.5e12, "L2": 9.0e12, "cold": {}}
    assert calibrated(tmp_path, afresh=True).peaks.bandwidth == {"L2": 9.0e12, MEMORY: 4.0e12}
    assert calibrated(tmp_path).peaks.bandwidth == {"L2": 9.0e12, MEMORY: 4.0e12}
    assert device.measurements == 2


def test_a_device_whose_flush_leaves_the_cache_warm_is_not_calibrated_at_all(device, tmp_path):
    device.says = {**MEASURED, "cold": {"16777216": 9.0e12}}
    with pytest.raises(Fatal, match="after a flush"):
        calibrated(tmp_path)
    device.says = MEASURED
    calibrated(tmp_path)
    assert device.measurements == 2


def test_another_driver_is_another_device(device, tmp_path, monkeypatch):
    calibrated(tmp_path)
    monkeypatch.setattr(nvidia, "ask", lambda: replace(DEVICE, driver="590.1"))
    calibrated(tmp_path)
    assert device.measurements == 2


@pytest.mark.parametrize("spoilt", ["torn", "old"])
def test_what_is_torn_or_too_old_is_measured_again(device, tmp_path, spoilt):
    calibrated(tmp_path)
    (kept,) = (tmp_path / "calibrations").iterdir()
    if spoilt == "torn":
        kept.write_text(kept.read_text()[:20])
    else:
        before = time.time() - VALID_S - 60
        os.utime(kept, (before, before))
    calibrated(tmp_path)
    assert device.measurements == 2
