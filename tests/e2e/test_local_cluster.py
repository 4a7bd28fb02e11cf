"""The local cluster as a person uses it: up, a search through it, status, an accident, down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import command_line
import psutil
import pytest
from command_line import OPERATOR, ROOT

from deploy.local import remains, state
from deploy.local.cluster import Cluster
from deploy.local.ports import is_free

pytestmark = [pytest.mark.serial, pytest.mark.timeout(240)]

CHIP = "simulated"


class Place:
    """A directory with a cluster of its own."""

    def __init__(self, directory, home):
        self.directory, self.home = directory, home
        self.folder = directory / ".cluster"

    def cluster(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deploy.local", *map(str, arguments)],
            cwd=self.directory,
            env=command_line.environment(self.home) | {"PYTHONPATH": str(ROOT)} | environment,
            capture_output=True,
            text=True,
            timeout=command_line.DEADLINE_S,
            check=False,
        )

    def kernelevolve(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return command_line.kernelevolve(*arguments, home=self.home, cwd=self.directory)

    def rows(self) -> dict[str, dict[str, object]]:
        done = self.cluster("status", "--json")
        return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def place(home, tmp_path_factory):
    """A running cluster; whatever a test does to it, nothing of it stays."""
    place = Place(tmp_path_factory.mktemp("cluster"), home)
    started = place.cluster("up", "--chips", CHIP, "--workers", 2)
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        yield place
    finally:
        place.cluster("down")
        assert remains.marked(place.folder) == set()


def test_a_search_goes_through_it_from_submit_to_the_result(place):
    done = place.kernelevolve("submit", OPERATOR, "--chip", CHIP, "--evaluations", 12, "--watch", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command_line.last_object(done)["evaluations"] == 12


def test_a_second_up_says_what_runs(place):
    before = place.rows()
    again = place.cluster("up", "--chips", CHIP)
    assert again.returncode == 0
    assert f"runs already at {state.read(place.folder).server}" in again.stdout
    assert {name: row["pid"] for name, row in place.rows().items()} == {
        name: row["pid"] for name, row in before.items()
    }


def test_status_tells_of_every_process(place):
    rows = place.rows()
    assert set(rows) == {
        *("kafka", "mongo", "redis", "search", "synthesizer", "knowledge"),
        *(f"evaluator-{CHIP}-{n}" for n in (1, 2)),
    }
    assert all(row["ready"] and psutil.pid_exists(row["pid"]) for row in rows.values()), rows


def test_a_killed_process_is_started_again_and_counted(place):
    cluster = Cluster(place.folder)
    killed = cluster.kill("search")
    cluster.wait_until_ready(["search"])
    row = place.rows()["search"]
    assert row["restarts"] == 1
    assert row["pid"] != killed


def test_down_leaves_no_process_and_no_port_even_when_the_supervisor_was_killed(place):
    ports = state.read(place.folder).ports
    belong = remains.marked(place.folder)
    supervisor = int((place.folder / "supervisord.pid").read_text())
    os.kill(supervisor, signal.SIGKILL)
    done = place.cluster("down")
    assert done.returncode == 0, done.stdout + done.stderr
    assert remains.alive(belong) == set()
    assert all(is_free(port) for port in ports)
    assert "nothing runs here" in place.cluster("down").stdout


def test_a_service_that_cannot_start_is_named_with_the_end_of_its_log_and_nothing_stays(home, tmp_path):
    place = Place(tmp_path, home)
    done = place.cluster("up", "--chips", CHIP, "--workers", 1, LOG_FORMAT="poetry")
    assert done.returncode == 1
    assert " ended before it was ready" in done.stderr
    assert "LOG_FORMAT" in done.stderr
    assert remains.marked(place.folder) == set()
