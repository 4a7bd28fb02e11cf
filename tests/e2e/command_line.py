"""Running the product's command line as a person does: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = ROOT / "tests" / "operators" / "row_softmax.py"
DEADLINE_S = 240
QUICK = {
    "TIMING_ROUNDS": "11",
    "TIMING_ROUNDS_MAX": "11",
    "TIMING_FINAL_ROUNDS": "6",
    "TIMING_FINAL_ROUNDS_MAX": "6",
    "TIMING_BLOCK_NS": "4000000",
    "TIMING_FINAL_PROCESSES": "2",
    # These tests are about what happens, not about how fast: a busy machine must not send them round again.
    "TIMING_DRIFT_PPM": "100000000",
    "TIMING_SPREAD_PPM": "100000000",
    "CONTENTION_FOREIGN_PPM": "100000000",
    "CONTENTION_WAITING_PPM": "100000000",
    "CONTENTION_STEAL_PPM": "100000000",
}


def environment(home: Path) -> dict[str, str]:
    """The environment with user data and skills under ``home``, so that tests neither see nor change the user's.

    The cache of built tools stays the user's: it holds only what follows from its key.
    """
    return os.environ | QUICK | {"XDG_DATA_HOME": str(home / "data"), "COLUMNS": "120"}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "cli.main", *map(str, arguments)]


def kernelevolve(
    *arguments: object,
    home: Path,
    cwd: Path = ROOT,
    settings: Mapping[str, str] = MappingProxyType({}),
    deadline_s: float = DEADLINE_S,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, output captured. ``settings`` are variables beside those of every test."""
    env = environment(home) | {"PYTHONPATH": str(ROOT)} | settings
    return subprocess.run(
        command(*arguments), cwd=cwd, env=env, capture_output=True, text=True, timeout=deadline_s, check=False
    )


def last_object(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON object a command printed last."""
    assert done.stdout.strip(), done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
