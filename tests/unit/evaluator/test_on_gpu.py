"""What a hosted kernel on a GPU is given, and its time without that of the flushes between its calls."""

from __future__ import annotations

import asyncio

import pytest

from evaluator_svc.boxes import gpu
from evaluator_svc.hosted.on_gpu import FlushedRunner, profile
from evaluator_svc.hosted.process import HostedRunner
from evaluator_svc.runner.ending import RunFailure, spoke
from evaluator_svc.runner.process import Ran

RAN = Ran(elapsed_ns=1_000_000, runner_ns=900_000, cpu_ns=800_000, return_code=0, device_ns=500_000)


@pytest.fixture
def ran(monkeypatch):
    """What the runner makes of an answer of the process below it; each flush costs 40 us."""

    def of(answer: Ran | RunFailure, calls: int) -> Ran | RunFailure:
        async def run(*_, **__) -> Ran | RunFailure:
            return answer

        monkeypatch.setattr(HostedRunner, "run", run)
        runner = FlushedRunner.__new__(FlushedRunner)
        runner.flush_ns = 40_000.0
        return asyncio.run(runner.run(calls))

    return of


def test_the_time_of_a_block_is_less_that_of_its_flushes(ran):
    found = ran(RAN, 10)
    assert (found.elapsed_ns, found.runner_ns, found.device_ns) == (600_000, 500_000, 500_000)


def test_a_command_without_a_call_has_no_flush_in_it(ran):
    assert ran(RAN, 0) == RAN


def test_no_time_becomes_nothing_or_less(ran):
    found = ran(RAN, 1000)
    assert min(found.elapsed_ns, found.runner_ns) == 1


def test_a_failure_is_handed_on_as_it_is(ran):
    assert ran(spoke(), 10) == spoke()


def test_its_box_holds_one_device_and_no_limit_that_a_driver_would_break():
    found = profile()
    assert set(found.devices) <= set(gpu(0))
    assert not found.address_space
    assert not found.hide_proc
    assert not found.own_processes
    assert "/sys" in {mount.target for mount in found.mounts}
    assert not any(mount.writable for mount in found.mounts)


def test_its_fork_server_imports_nothing_that_starts_the_driver():
    assert "torch.utils.cpp_extension" not in profile().modules
