"""Fork servers and candidates end when they should, and nothing outlives the controller."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from evaluator_svc.hosted import on_gpu
from evaluator_svc.hosted.process import PYTHON
from evaluator_svc.runner.process import Ran
from shared.errors import Retryable
from tests.integration.hosted.softmax_module import RIGHT, forward, lab, values

pytestmark = [pytest.mark.timeout(90), pytest.mark.serial]

ROOT = Path(__file__).parents[3]
CONTROLLER = """
import asyncio, sys
from tests.integration.hosted.softmax_module import forward, lab, values
with lab() as bench:
    async def scenario():
        async with bench.open(forward("while x is not None: pass"), persistent_weights=True) as runner:
            running = asyncio.create_task(runner.run(1, timeout_s=60))
            await asyncio.sleep(0.2)
            print("running", flush=True)
            await running
    bench.loop.run(scenario())
"""


def test_the_death_of_the_controller_ends_fork_server_and_candidate():
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert controller.stdout is not None
    assert controller.stdout.readline() == "running\n"
    below = psutil.Process(controller.pid).children(recursive=True)
    assert len(below) >= 3
    controller.kill()
    controller.wait()
    controller.stdout.close()
    _, alive = psutil.wait_procs(below, timeout=10)
    assert alive == []


def test_a_fork_server_that_died_is_nobodys_fault_and_is_replaced(lab):
    async def scenario():
        async with lab.open(RIGHT) as runner:
            zygote = lab.hosts.zygote(PYTHON)
            os.kill(zygote.pid, signal.SIGKILL)
            until = time.monotonic() + 10
            while zygote.alive and time.monotonic() < until:
                await asyncio.sleep(0.01)
            with pytest.raises(Retryable, match="lost"):
                await runner.run(1)

    lab.loop.run(scenario())
    assert isinstance(lab.outcome(RIGHT), Ran)


def test_closing_ends_the_fork_server():
    mine = psutil.Process()
    before = {child.pid for child in mine.children(recursive=True)}
    with lab() as bench:
        bench.outcome(RIGHT)
        during = {child.pid for child in mine.children(recursive=True)} - before
        assert during
    assert not during & {child.pid for child in mine.children(recursive=True)}


def test_candidates_run_side_by_side(lab):
    async def one(number):
        text = forward(f"return torch.full_like(x, {number})")
        async with lab.open(text) as runner:
            runner.write_input(0, 0, values())
            assert isinstance(await runner.run(1), Ran)
            return float(memoryview(runner.output_bytes(0, 0)).cast("f")[0])

    async def scenario():
        return await asyncio.gather(*(one(number) for number in range(4)))

    assert lab.loop.run(scenario()) == [0.0, 1.0, 2.0, 3.0]


def test_a_fork_server_that_cannot_build_tritons_driver_serves_those_that_need_none():
    # No compiler of that name; where there is no driver's library, either, that is what is missing first.
    profile = replace(
        PYTHON,
        name="without a driver",
        modules=("torch", "triton", on_gpu.TRITON_DRIVER),
        environment={"CC": "/nowhere/gcc"},
    )
    with lab() as bench:
        outcome = bench.outcome(RIGHT, profile=profile)
        assert isinstance(outcome, Ran), outcome
