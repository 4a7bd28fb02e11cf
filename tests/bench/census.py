"""Counting what evaluations could leave behind: in this process, below it, and in the places it writes to."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SHARED_MEMORY = Path("/dev/shm")
MEMORY = "controller's memory, KiB"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Counts by name after ``evaluations`` evaluations."""

    evaluations: int
    counts: dict[str, int]


class Census:
    """Of the process that makes it, and of ``temporary``, where it and its children put their temporary files."""

    def __init__(self, temporary: Path) -> None:
        self._temporary, self._me = temporary, psutil.Process()

    def sample(self, evaluations: int) -> Sample:
        gc.collect()
        children = self._me.children(recursive=True)
        zombies = sum(_is_zombie(child) for child in children)
        descriptors = [_target(fd) for fd in Path("/proc/self/fd").iterdir()]
        return Sample(
            evaluations=evaluations,
            counts={
                "processes": len(children) - zombies,
                "zombies": zombies,
                "descriptors": len(descriptors),
                "memory files held": sum(target.startswith("/memfd:") for target in descriptors),
                "threads": threading.active_count(),
                MEMORY: self._me.memory_info().rss >> 10,
                "temporary files": sum(1 for _ in self._temporary.rglob("*")),
                "files in shared memory": sum(1 for _ in SHARED_MEMORY.glob(f"*-{self._me.pid}-*/**/*")),
                "System V segments and semaphores": sum(
                    len(Path(f"/proc/sysvipc/{kind}").read_text().splitlines()) - 1 for kind in ("shm", "sem", "msg")
                ),
            },
        )


def slope(samples: Sequence[Sample], name: str) -> float:
    """Growth of a count per evaluation: least squares over ``samples``."""
    xs, ys = [float(s.evaluations) for s in samples], [float(s.counts[name]) for s in samples]
    middle, level = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle) ** 2 for x in xs)
    return sum((x - middle) * (y - level) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _target(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except OSError:  # the listing's own
        return ""
