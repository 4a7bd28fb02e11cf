"""Peaks are measured on this machine, kept, and never lowered by a disturbed measurement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluator_svc.calibration import calibrate
from evaluator_svc.roofline import MEMORY
from tests.aio import on_loop
from tests.integration.evaluator.pipeline import CHIP

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]


@on_loop
async def test_peaks_are_measured_once_kept_and_only_ever_raised(tmp_path: Path):
    first = await calibrate(CHIP, tmp_path, threads=1, cpus=())
    assert first.peaks.flops > 0
    assert first.peaks.bandwidth[MEMORY] > 0
    assert all(rate > 0 for rate in first.peaks.bandwidth.values())
    assert await calibrate(CHIP, tmp_path, threads=1, cpus=()) == first

    (kept,) = (tmp_path / "calibrations").glob("*.json")
    rates = json.loads(kept.read_text())
    kept.write_text(json.dumps(rates | {MEMORY: 1e6}))
    again = await calibrate(CHIP, tmp_path, threads=1, cpus=(), afresh=True)
    assert again.peaks.bandwidth[MEMORY] == 1e15

    kept.write_text("{torn")
    assert (await calibrate(CHIP, tmp_path, threads=1, cpus=())).peaks.bandwidth[MEMORY] < 1e15
