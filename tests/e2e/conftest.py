"""One finished search, shared by the tests that only read it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import command_line


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home directory for user data."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def finished(home, tmp_path_factory):
    """``(run directory, final object)`` of a small search through the command line."""
    run = tmp_path_factory.mktemp("runs") / "softmax"
    done = command_line.kernelevolve(
        "optimize", command_line.OPERATOR, "--evaluations", 6, "--seed", 7, "--out", run, "--json", home=home
    )
    assert done.returncode == 0, done.stderr
    return run, command_line.last_object(done)
