"""A search that is told to stop: soon, cleanly, and with the way to go on."""

from __future__ import annotations

import signal
import subprocess

import psutil
import pytest
from command_line import OPERATOR, ROOT, command, environment

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, "[1/40]"), (signal.SIGTERM, "admitting")],
    ids=["ctrl_c_in_mid_search", "sigterm_while_admitting"],
)
def test_a_search_told_to_stop_leaves_no_process_and_says_how_to_go_on(number, moment, home, tmp_path):
    run = tmp_path / "run"
    process = subprocess.Popen(
        command("optimize", OPERATOR, "--out", run), cwd=ROOT, env=environment(home), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    next(line for line in process.stderr if moment in line)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    said = process.stderr.read().splitlines()
    process.stderr.close()

    assert process.wait() == 128 + number
    assert said[-1] == f"interrupted; `kernelevolve resume {run}` goes on from here"
    assert not any("Traceback" in line for line in said)
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
