"""The GPU's measured peaks, kept by device and driver for some hours: the counterpart of ``calibration``."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator_svc import nvidia
from evaluator_svc.calibration import VALID_S, Calibration
from evaluator_svc.roofline import MEMORY, Peaks
from evaluator_svc.trusted_child import TrustedChild
from shared.errors import Fatal

TIMEOUT_S = 180.0
COLD_MARGIN = 1.1
"""Reads after a flush that are faster than memory by more than this came from the cache: the flush does not work."""


async def calibrate(cache: Path, *, afresh: bool = False) -> Calibration:
    """Peaks measured by a trusted process that has the device to itself, or remembered ones.

    Raises:
        OracleLost: the process died.
        Fatal: flushing does not empty the cache, so no time measured here would be a cold one.
    """
    gpu = await asyncio.to_thread(nvidia.ask)
    identity = f"{await asyncio.to_thread(nvidia.uuid)} {gpu.driver if gpu else ''}"
    kept = cache / "calibrations" / f"gpu-{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"
    before = _read(kept)
    if not before or afresh:
        said = await _measure()
        check_cold(said["cold"], said["memory"])
        for name in ("memory", "L2"):
            said[name] = max(said[name], before.get(name, 0.0))
        before = said
        kept.parent.mkdir(parents=True, exist_ok=True)
        scratch = kept.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(before, sort_keys=True))
        scratch.replace(kept)
    peaks = Peaks(
        bandwidth={"L2": before["L2"], MEMORY: before["memory"]},
        capacity={"L2": int(before["L2_bytes"])},
        # Tensor cores make the peak depend on the dtype, and reassociation on the operator: no operation count is
        # held against a kernel here.
        flops=0.0,
    )
    return Calibration(peaks=peaks, threads=1, at_s=kept.stat().st_mtime)


def check_cold(cold: Mapping[str, float], memory: float) -> None:
    """Raises ``Fatal`` when copies after a flush read faster than memory (bytes/s) can deliver."""
    for size, rate in cold.items():
        if rate > COLD_MARGIN * memory:
            raise Fatal(
                f"{int(size) >> 20} MiB are read at {rate / 1e9:.0f} GB/s after a flush, memory does {memory / 1e9:.0f}"
            )


async def _measure() -> dict[str, Any]:
    async with TrustedChild("calibrator", cpus=(), environment={}, where="calibration") as child:
        await child.ask("open", timeout_s=TIMEOUT_S, role="calibrator")
        return await child.ask("measure", timeout_s=TIMEOUT_S)


def _read(kept: Path) -> Mapping[str, Any]:
    if not kept.exists() or time.time() - kept.stat().st_mtime > VALID_S:
        return {}
    try:
        found: Mapping[str, Any] = json.loads(kept.read_text())
    except ValueError:
        return {}  # torn by a crash: measured again
    return found
