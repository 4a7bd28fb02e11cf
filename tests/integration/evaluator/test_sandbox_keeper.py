"""Whatever ends whoever started a box, and in whichever moment, nothing of the box stays."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluator_svc.runner.program import machine_sandbox, runtime_mounts
from shared.boxes import Box, Mount
from tests.integration.evaluator.test_sandbox import ROOT

pytestmark = pytest.mark.serial

STARTERS = 25
GONE_WITHIN_S = 10.0
STARTER = """
import os, sys
from shared.boxes import Box, Mount
from evaluator_svc.runner.program import machine_sandbox, runtime_mounts
from pathlib import Path
sandbox = machine_sandbox()
mounts = (*runtime_mounts(), *(Mount(source=Path(p), target=p) for p in ("/usr", "/bin", "/lib", "/lib64")))
box = Box(mounts=mounts, environment={"KE_MARK": sys.argv[1]}, own_user=True)
print("ready", flush=True)
while True:
    output = os.memfd_create("output")
    sandbox.launch(["/usr/bin/sleep", "1000"], box, fds=(), output=output)
"""
"""Starts boxes as fast as it can; what is in them would stay for a quarter of an hour."""


def marked(mark):
    """Processes whose environment holds ``mark``."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:  # gone meanwhile
            continue
    return found


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_of_a_box_outlives_a_starter_that_is_killed_at_a_random_moment(end):
    machine_sandbox()
    draw = random.Random(end)
    for _ in range(STARTERS // 2):
        mark = f"KE_MARK={secrets.token_hex(8)}"
        command = [sys.executable, "-c", STARTER, mark.partition("=")[2]]
        starter = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"ready\n"
        time.sleep(draw.uniform(0, 0.02))  # the moment is what is drawn, nothing is waited for
        starter.send_signal(end)
        starter.wait()
        starter.stdout.close()
        deadline = time.monotonic() + GONE_WITHIN_S
        while (left := marked(mark)) and time.monotonic() < deadline:
            os.sched_yield()
        assert left == []


def test_a_box_whose_keeper_was_killed_ends_all_the_same():
    mark = f"KE_MARK={secrets.token_hex(8)}"
    mounts = (*runtime_mounts(), *(Mount(source=Path(p), target=p) for p in ("/usr", "/bin", "/lib", "/lib64")))
    box = Box(mounts=mounts, environment={"KE_MARK": mark.partition("=")[2]})
    output = os.memfd_create("output")
    boxed = machine_sandbox().launch(["/usr/bin/sleep", "1000"], box, fds=(), output=output)
    os.close(output)
    boxed.process.kill()
    boxed.kill()
    assert marked(mark) == []
