"""Processes that hold secrets are closed to those that they start, whoever both are."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.integration.confinement import users
from tests.integration.confinement.spy import SECRET

DUMPABLE = "__import__('ctypes').CDLL(None).prctl(3, 0, 0, 0, 0)"
SERVICE = f"""
import sys
from shared import process
from shared.errors import UserError

def build(ports):
    raise UserError(f"dumpable: {{{DUMPABLE}}}")

sys.exit(process.main(build))
"""
COMMAND = f"""
import atexit, sys
from cli.main import main
atexit.register(lambda: print("dumpable:", {DUMPABLE}, file=sys.stderr))
sys.argv = ["kernelevolve", "--version"]
main()
"""


@pytest.mark.parametrize("user", users.USERS)
def test_an_operator_that_an_oracle_reads_finds_no_secret_of_the_evaluator(user, tmp_path):
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [*users.command(user), "-m", "tests.integration.confinement.watched_oracle"],
        env=users.environment(tmp_path, PLANTED=SECRET),
        cwd=users.ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert "spy: its top level raises" in done.stdout, done.stderr
    found = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
    assert found == {"environ": "EACCES", "memory": "EACCES", "trace": "EPERM", "own": "GOT", "leak": False}


@pytest.mark.parametrize("program", [SERVICE, COMMAND], ids=["service", "command"])
@pytest.mark.parametrize(("asked", "dumpable"), [("", 0), ("false", 0), ("true", 1)])
def test_services_and_commands_are_closed_unless_told_otherwise(program, asked, dumpable, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=users.environment(tmp_path, STORE_URL="memory:", ALLOW_INSPECTION=asked),
        cwd=users.ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert f"dumpable: {dumpable}" in done.stderr, done.stderr
