"""What a worker knows of its own noise: ratios that it measured between two processes of one equal kernel (A/A).

Kept by machine and number of threads in the cache, beside the calibrations. Only the worker's own canary writes here:
what a candidate does cannot raise or lower the gain that others must show.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from pathlib import Path

from evaluator_svc.statistics import noise_floor
from shared.machine import processor

KEPT = 400
"""Newest measurements that count."""
VALID_S = 7 * 24 * 3600
"""Older ones do not: kernels, firmware and neighbours change."""


class NoiseFloor:
    """The A/A history of this machine. Written by one process at a time, which has the device to itself."""

    def __init__(self, cache: Path) -> None:
        self._directory = cache / "equal-pairs"

    def add(self, threads: int, log_ratio: float) -> None:
        """Keep one more ``log(time / time)`` of equal kernels.

        Raises:
            ValueError: it is not finite.
        """
        if not math.isfinite(log_ratio):
            raise ValueError(f"{log_ratio} is no log-ratio")
        kept = self._read(threads)
        kept.append((time.time(), log_ratio))
        file = self._file(threads)
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(kept[-KEPT:]))
        scratch.replace(file)

    def history(self, threads: int) -> list[float]:
        """The log-ratios that count, oldest first."""
        return [ratio for _, ratio in self._read(threads)]

    def delta(self, threads: int) -> float:
        """The gain that a claim on this machine must exceed."""
        return noise_floor(self.history(threads))

    def _file(self, threads: int) -> Path:
        identity = "\0".join((processor().model, platform.node(), str(threads)))
        return self._directory / f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.json"

    def _read(self, threads: int) -> list[tuple[float, float]]:
        try:
            found = json.loads(self._file(threads).read_text())
            kept = [(float(at_s), float(ratio)) for at_s, ratio in found]
        except (OSError, ValueError, TypeError):
            return []  # none yet, or torn by a crash: it is measured again
        oldest = time.time() - VALID_S
        return [(at_s, ratio) for at_s, ratio in kept if at_s > oldest and math.isfinite(ratio)]
