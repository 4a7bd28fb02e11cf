"""The same verdicts where the machine grants less, and a level that says what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator_svc.runner.program import (
    cache_directory,
    hosted_library,
    keeper_program,
    machine_sandbox,
    runner_program,
    stopwatch,
)

pytestmark = [pytest.mark.timeout(120), pytest.mark.serial]

ROOT = Path(__file__).parents[3]
INNER = "seccomp+landlock+rlimits"
VERDICTS = {
    "right": "right", "fork": "CHEAT", "socket": "CHEAT", "reads a file of the project": "LAUNCH_FAILED",
    "reads /proc": "RUNTIME_ERROR", "writes a file": "LAUNCH_FAILED", "kills its parent": "CHEAT",
    "returns its input": "CHEAT", "writes to its input": "MUTATED_INPUT",
}  # fmt: skip


SHOWN = """
set -e
mkdir "$3/kept"
mount --bind "$2" "$3/kept"
mount -t tmpfs -o mode=755 none "$1"
mkdir -p "$2"
mount --move "$3/kept" "$2"
shift 3
exec "$@"
"""
"""For a shell in mounts of its own: only the installation $2 is left of the folder $1, and anybody may read it."""


def showing_python(command, scratch):
    """``command`` in mounts of its own where an ordinary user can read Python."""
    python = Path(sys.base_prefix).resolve()
    hidden = [path for path in (python, *python.parents) if path.stat().st_mode & 0o005 != 0o005]
    if not hidden:
        return command
    return ["unshare", "--mount", "sh", "-c", SHOWN, "sh", str(hidden[-1]), str(python), str(scratch), *command]


def elsewhere(condition):
    for program in (runner_program, keeper_program, hosted_library, stopwatch):
        program()
    with tempfile.TemporaryDirectory() as cache:
        shutil.copytree(cache_directory() / "programs", Path(cache) / "kernelevolve" / "programs")
        for directory in (cache, Path(cache) / "kernelevolve"):
            Path(directory).chmod(0o777)
        command = [sys.executable, "-m", "tests.integration.hosted.elsewhere", condition, cache]
        if condition == "ordinary-user" and os.geteuid() == 0:
            command = showing_python(command, cache)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {name: found.pop(name, "") for name in ("level", "read by", "refused")}, found


def isolated():
    if not machine_sandbox().isolated:
        pytest.skip(f"this machine grants no namespaces: {machine_sandbox().refused}")


def test_an_ordinary_user_has_the_same_box():
    isolated()
    about, verdicts = elsewhere("ordinary-user")
    assert about["level"] == f"namespaces+mounts+{INNER}"
    assert about["read by"] == "the controller"
    assert verdicts == VERDICTS


def test_without_namespaces_the_other_layers_hold():
    about, verdicts = elsewhere("no-namespaces")
    assert about["level"].endswith(INNER)
    assert "namespaces" not in about["level"]
    assert verdicts == VERDICTS


@pytest.mark.slow
def test_without_landlock_the_mounts_hold():
    isolated()
    about, verdicts = elsewhere("no-landlock")
    assert "landlock" not in about["level"]
    assert verdicts == VERDICTS


@pytest.mark.slow
def test_without_system_call_filters_namespaces_hold():
    isolated()
    about, verdicts = elsewhere("no-seccomp")
    assert "seccomp" not in about["level"]
    # There is a socket to be had then, with no network behind it, and nobody to signal.
    assert verdicts == VERDICTS | {"socket": "ran", "kills its parent": "ran"}


def test_where_memory_may_not_be_read_the_candidates_side_copies_and_it_is_said():
    about, verdicts = elsewhere("no-reading")
    assert about["read by"] == "the candidate's side"
    assert verdicts == VERDICTS


def test_where_nothing_holds_nothing_runs():
    about, _ = elsewhere("no-namespaces+no-landlock+no-seccomp")
    assert about["refused"].startswith("sandbox: this machine confines nothing: ")
