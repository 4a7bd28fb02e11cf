"""Private directories of processes that were killed do not fill the disk or shared memory for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from evaluator_svc.scratch import BUILD, CASES, Scratch, sweep

MAKES_ONE = """
import pathlib, signal, sys
from evaluator_svc.scratch import Scratch
print(Scratch(sys.argv[1], pathlib.Path(sys.argv[2])).path, flush=True)
signal.pause()
"""


@contextmanager
def another(kind, within):
    """A process with a directory of its own, and that directory."""
    command = [sys.executable, "-c", MAKES_ONE, kind, str(within)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("kind", [CASES, BUILD])
def test_what_a_killed_process_left_is_removed_and_what_a_live_one_uses_is_not(tmp_path, kind):
    with Scratch(kind, tmp_path) as mine, another(kind, tmp_path) as (process, theirs):
        (mine.path / "kernel.s").write_text("in use")
        assert sweep(tmp_path) == []
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert [str(path) for path in sweep(tmp_path)] == [theirs]
        assert list(tmp_path.iterdir()) == [mine.path]
    assert list(tmp_path.iterdir()) == []


def test_the_lock_tells_and_not_the_process_id_which_another_container_may_use_as_well(tmp_path):
    left = tmp_path / f"ke-build-{os.getpid()}-abc"
    left.mkdir()
    assert sweep(tmp_path) == [left]


def test_what_others_named_alike_is_left_alone(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (tmp_path / "ke-build-unrelated").mkdir()
    (tmp_path / "ke-build-1-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "ke-build-1-file").touch()
    assert sweep(tmp_path) == []
    assert (tmp_path / "elsewhere" / "file").exists()
    assert len(list(tmp_path.iterdir())) == 4


def test_what_foreign_code_locked_up_is_removed_and_its_links_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    scratch = Scratch(BUILD, tmp_path)
    shut = scratch.path / "shut"
    shut.mkdir()
    (shut / "file").touch()
    (shut / "link").symlink_to(outside)
    shut.chmod(0o000)
    scratch.close()
    assert not scratch.path.exists()
    assert outside.stat().st_mode & 0o777 == 0o500
