"""A search that is told to stop: soon, cleanly, and with the way to go on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

import psutil
import pytest
from command_line import OPERATOR, ROOT, command, environment, kernelevolve, last_object

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


def captures(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):  # of a child that ended meanwhile
        return any("capture_child" in " ".join(one.cmdline()) for one in process.children(recursive=True))
    return False


def test_a_terminal_s_ctrl_c_while_the_operator_is_captured_is_no_fault_of_the_operator(home, tmp_path):
    run = tmp_path / "run"
    process = subprocess.Popen(
        command("optimize", OPERATOR, "--chip", "simulated", "--evaluations", 2, "--out", run),
        cwd=ROOT,
        env=environment(home),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watched, until = psutil.Process(process.pid), time.monotonic() + 60
    while not captures(watched):
        assert time.monotonic() < until
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # a terminal's reaches every process of the group
    process.communicate(timeout=60)

    assert process.returncode == 128 + signal.SIGINT
    done = kernelevolve("resume", run, "--json", home=home)
    assert last_object(done)["outcome"] in ("improved", "no_improvement"), done.stderr
