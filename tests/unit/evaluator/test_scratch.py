"""Scratch directories of processes that were killed do not fill shared memory for ever."""

from __future__ import annotations

import subprocess
import sys

from evaluator_svc import scratch

OF_A_DEAD_PROCESS = (
    "from evaluator_svc import scratch; import sys, pathlib; print(scratch.make(pathlib.Path(sys.argv[1])))"
)


def test_only_directories_whose_process_is_gone_are_swept(tmp_path):
    mine = scratch.make(tmp_path)
    command = [sys.executable, "-c", OF_A_DEAD_PROCESS, str(tmp_path)]
    left = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "ke-oracle-unrelated").mkdir()
    assert [str(path) for path in scratch.sweep(tmp_path)] == [left]
    assert sorted(tmp_path.iterdir()) == sorted([mine, tmp_path / "ke-oracle-unrelated"])
