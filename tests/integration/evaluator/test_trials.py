"""Trial builds: by a real compiler in its box, in process and over gRPC; nothing of a kernel is run."""

from __future__ import annotations

import asyncio

import pytest

from evaluator_svc import service
from evaluator_svc.evaluate import Evaluator
from evaluator_svc.evaluators import evaluator_of
from evaluator_svc.on_demand import OnDemand
from evaluator_svc.pool import Worker
from evaluator_svc.settings import from_env
from evaluator_svc.toolchains.cpu import CpuToolchain
from evaluator_svc.trials import Trials
from shared.errors import Unavailable, UserError
from shared.events import Status
from shared.ports import open_ports
from shared.rpc.settings import ClientSettings
from shared.service import Service, Servicer
from shared.settings import PortSettings
from shared.trial_build import BuildErrors, Built, TrialKernel
from synthesizer_svc.remote_trials import RemoteTrials, clients
from tests.aio import on_loop
from tests.integration.evaluator.pipeline import CHIP, SETTINGS, kernel_source
from tests.loopback import served

MEMORY = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
RIGHT, WRONG = kernel_source("right"), kernel_source("compile_error")


def kernel(source: str = RIGHT, **changes) -> TrialKernel:
    given = {"chip": CHIP, "language": "cpp", "source": source, "flags": ("-O2",), "entry": "ke_launch"}
    return TrialKernel(**(given | changes))


async def tried(*kernels: TrialKernel, directory=None):
    async with open_ports(MEMORY) as ports:
        toolchain = CpuToolchain(directory=directory) if directory else CpuToolchain()
        evaluator = Evaluator(ports, SETTINGS, toolchain)
        try:
            return [await Trials(evaluator).build(one) for one in kernels]
        finally:
            await evaluator.close()


def test_a_kernel_that_builds_says_so_and_one_that_does_not_says_why_without_paths():
    good, bad = asyncio.run(tried(kernel(), kernel(WRONG)))
    assert good == Built()
    assert isinstance(bad, BuildErrors)
    assert bad.status is Status.COMPILE_ERROR
    assert "error" in bad.text
    assert "/kernel.cpp" not in bad.text


def test_equal_kernels_get_equal_errors(tmp_path):
    """What a model is told must be the same after a crash, or its question has another hash."""
    once = asyncio.run(tried(kernel(WRONG), directory=tmp_path / "one"))
    again = asyncio.run(tried(kernel(WRONG), directory=tmp_path / "two"))
    assert once == again


def test_flags_and_the_entry_are_checked_like_those_of_any_kernel():
    flags, entry = asyncio.run(tried(kernel(flags=("-fplugin=x.so",)), kernel(entry="evil_launch")))
    assert isinstance(flags, BuildErrors)
    assert "-fplugin" in flags.text
    assert isinstance(entry, BuildErrors)
    assert entry.status is Status.LAUNCH_FAILED


@pytest.mark.parametrize("changes", [{"chip": "nvidia-sm_90"}, {"language": "cobol"}])
def test_what_this_worker_does_not_offer_is_refused(changes):
    with pytest.raises(UserError):
        asyncio.run(tried(kernel(**changes)))


@on_loop
async def test_builds_wait_while_something_is_timed():
    async with open_ports(MEMORY) as ports:
        evaluator = Evaluator(ports, SETTINGS, CpuToolchain())
        try:
            async with evaluator._device.gate.alone():
                build = asyncio.create_task(Trials(evaluator).build(kernel()))
                await asyncio.wait([build], timeout=0.2)
                assert not build.done()
            assert await build == Built()
        finally:
            await evaluator.close()


def worker(ports, **environment):
    evaluator = evaluator_of(ports, from_env(environment))
    on_demand = OnDemand(ports.store, evaluator, Worker(ports, evaluator))

    def add(server):
        from evaluator_svc import grpc_api

        grpc_api.add(on_demand, Trials(evaluator), server)

    return Service(name="evaluator", servicers=(Servicer(name=service.SERVICER, add=add),), close=evaluator.close)


@on_loop
async def test_a_synthesizer_elsewhere_gets_the_same_answers_over_grpc():
    async with open_ports(MEMORY) as ports, served([worker(ports, EVALUATOR_CHIP=CHIP)], ports) as address:
        remote = RemoteTrials(clients(f"{CHIP}=grpc://{address}", {}))
        try:
            assert await remote.build(kernel()) == Built()
            assert [await remote.build(kernel(WRONG))] == await tried(kernel(WRONG))
            with pytest.raises(UserError, match="language"):
                await remote.build(kernel(language="cobol"))
            with pytest.raises(UserError, match="names no evaluator"):
                await remote.build(kernel(chip="nvidia-sm_90"))
        finally:
            await remote.close()


@on_loop
async def test_a_chip_that_builds_nothing_cannot_tell_and_a_worker_that_is_gone_neither():
    async with open_ports(MEMORY) as ports, served([worker(ports, EVALUATOR_CHIP="simulated")], ports) as address:
        remote = RemoteTrials(clients(f"simulated=grpc://{address}", {}))
        try:
            with pytest.raises(UserError, match="builds nothing"):
                await remote.build(kernel(chip="simulated"))
        finally:
            await remote.close()
    gone = RemoteTrials({CHIP: ClientSettings(server=address, tries_max=1)})
    try:
        with pytest.raises(Unavailable):
            await gone.build(kernel())
    finally:
        await gone.close()


@pytest.mark.parametrize("text", ["cpu", "cpu=http://a:1", "cpu=grpc://a", "a=grpc://h:1,a=grpc://h:2", "=grpc://h:1"])
def test_a_list_of_evaluators_that_does_not_parse_is_refused_by_name(text):
    with pytest.raises(UserError, match="EVALUATOR_URLS"):
        clients(text, {})


def test_a_list_of_evaluators_names_a_pool_for_each_chip():
    found = clients("a=grpc://h:1, b=grpc://h:2", {"KERNELEVOLVE_TOKEN": "t" * 32})
    assert {chip: client.server for chip, client in found.items()} == {"a": "h:1", "b": "h:2"}
