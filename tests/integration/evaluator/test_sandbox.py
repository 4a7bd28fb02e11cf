"""Which layers hold where, and that a missing one is told."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from evaluator_svc.runner.process import Ran, Runner
from evaluator_svc.runner.program import cache_directory, keeper_program, machine_sandbox, runner_program, stopwatch
from evaluator_svc.sandbox import SAME_USER
from tests.integration.evaluator.softmax_runner import SPEC, build

pytestmark = pytest.mark.serial

ROOT = Path(__file__).parents[3]
INNER = "seccomp+landlock+rlimits"
HOSTILE = {
    "right": "ran", "fork_bomb": "CHEAT", "network_call": "CHEAT", "reads_project_files": "CHEAT",
    "includes_host_file": "COMPILE_ERROR", "allocates_64_gb": "OUT_OF_MEMORY",
    "kills_parent": "CHEAT", "writes_past_end": "RUNTIME_ERROR",
}  # fmt: skip


@contextmanager
def private_cache():
    """A cache that any user may write to, with the project's programs in it: they do not depend on the condition."""
    runner_program()
    keeper_program()
    stopwatch()
    with tempfile.TemporaryDirectory() as cache:
        shutil.copytree(cache_directory() / "programs", Path(cache) / "kernelevolve" / "programs")
        for directory in (cache, Path(cache) / "kernelevolve"):
            Path(directory).chmod(0o777)
        yield cache


def elsewhere(condition, *kernels):
    with private_cache() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "tests.integration.evaluator.elsewhere", condition, cache, *kernels],
            cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def inner():
    """The level without namespaces: root's boxes are another user's."""
    return INNER if machine_sandbox().user == SAME_USER else f"user+{INNER}"


def full():
    """The highest level here: some machines grant no namespaces, and say so in ``Sandbox.refused``."""
    sandbox = machine_sandbox()
    assert sandbox.isolated or sandbox.refused
    return f"namespaces+mounts+{inner()}" if sandbox.isolated else inner()


def readable_by_all(path):
    return all(p.stat().st_mode & 0o005 == 0o005 for p in (path, *path.parents))


@pytest.mark.skipif(
    os.geteuid() == 0 and not readable_by_all(Path(sys.prefix) / "bin"),
    reason="root keeps the project where an ordinary user cannot read it",
)
def test_an_ordinary_user_has_the_same_box():
    found = elsewhere("ordinary-user", *HOSTILE)
    assert found == HOSTILE | dict.fromkeys(("runner level", "build level"), full().replace("user+", ""))


def test_without_namespaces_the_level_says_so_and_the_other_layers_hold():
    found = elsewhere("no-namespaces", *HOSTILE)
    assert found == HOSTILE | {"runner level": inner(), "build level": inner()}


@pytest.mark.parametrize("layer", ["landlock", "seccomp"])
def test_a_layer_that_the_kernel_refuses_is_missing_from_the_level(layer):
    found = elsewhere(f"no-{layer}", "right")
    lower = full().replace(f"+{layer}", "")
    assert found == {"right": "ran", "runner level": lower, "build level": lower}


def test_a_machine_that_confines_nothing_is_given_no_kernel_to_run():
    found = elsewhere("no-namespaces+no-landlock+no-seccomp", "right")
    assert found["refused"].startswith("sandbox: this machine confines nothing: bwrap: ")


def test_a_kernel_sees_no_file_of_the_host_but_itself():
    async def scenario():
        built = await build("looks_around")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            ran = await runner.run(1)
            assert isinstance(ran, Ran), ran
            return runner.sandbox, list(runner.output_bytes(0, 0)[:8].cast("f"))

    if not machine_sandbox().isolated:
        pytest.skip(f"this machine grants no namespaces: {machine_sandbox().refused}")
    assert asyncio.run(scenario()) == (full(), [0.0, 1.0])


def test_a_box_leaves_no_process_behind():
    mine = psutil.Process()
    before = set(mine.children(recursive=True))

    async def scenario():
        built = await build("right")
        async with Runner.open(built.path, [SPEC], [SPEC]) as runner:
            await runner.run(1)
            return set(mine.children(recursive=True)) - before

    during = asyncio.run(scenario())
    # The keeper; in namespaces: bubblewrap, the reaper; the runner program.
    assert len(during) == (4 if machine_sandbox().isolated else 2)
    assert not any(child.is_running() for child in during)
