"""A worker is ready when a real kernel gave its result inside the exact boxes; what is missing is named."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from evaluator_svc import readiness
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared.errors import ChipError
from tests.integration.evaluator.test_sandbox import ROOT, private_cache

pytestmark = pytest.mark.serial

PROGRAM = """
import asyncio, sys
from tests.integration.evaluator.elsewhere import impose
impose(sys.argv[1].split("+"))
from evaluator_svc import readiness
from evaluator_svc.toolchains.cpu import CpuToolchain
from shared.errors import ChipError
try:
    print(asyncio.run(readiness.prove(CpuToolchain())))
except ChipError as error:
    print("refused:", error)
"""


def proved(condition):
    with private_cache() as cache:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, condition],
            cwd=ROOT, env={"XDG_CACHE_HOME": cache, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_worker_proves_itself_with_a_kernel_that_no_cache_has(tmp_path):
    toolchain = CpuToolchain(directory=tmp_path)
    found = asyncio.run(readiness.prove(toolchain))
    asyncio.run(readiness.prove(toolchain))
    assert len(list(tmp_path.iterdir())) == 2
    assert found.missing == () or machine_sandbox().refused
    assert found.runner in str(found)


def test_a_missing_layer_is_named_with_its_remedy_and_the_machines_own_words():
    said = proved("no-namespaces+no-landlock")
    assert "without namespaces: allow unprivileged user namespaces" in said
    assert "without landlock: use a kernel of at least 5.13" in said
    assert "bubblewrap says: bwrap: " in said


def test_a_machine_that_confines_nothing_is_not_ready_and_says_why():
    assert "refused: sandbox: this machine confines nothing: bwrap: " in proved("no-namespaces+no-landlock+no-seccomp")


def test_a_compiler_that_answers_and_does_not_compile_is_not_ready(tmp_path, monkeypatch):
    fake = tmp_path / "g++"
    fake.write_text('#!/bin/sh\ntest "$1" = --version && echo "g++ 99" && exit 0\necho "error: no licence"; exit 1\n')
    fake.chmod(0o755)
    monkeypatch.setattr("evaluator_svc.toolchains.build_box.compiler", lambda: fake)
    with pytest.raises(ChipError, match="cannot build a vector sum: layer build box"):
        asyncio.run(readiness.prove(CpuToolchain(directory=tmp_path / "builds")))
