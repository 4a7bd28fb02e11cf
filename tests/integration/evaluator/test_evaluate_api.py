"""Verdicts on demand over gRPC, from the simulated chip: stages, verdict, refusals, and what cancelling does."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import psutil
import pytest

from evaluator_svc import service
from evaluator_svc.evaluators import evaluator_of
from evaluator_svc.memo import COLLECTION
from evaluator_svc.on_demand import OnDemand
from evaluator_svc.pool import Worker
from evaluator_svc.runner.program import runner_program
from evaluator_svc.settings import HARNESS_VERSION, from_env
from evaluator_svc.simulated import STALLS
from evaluator_svc.trials import Trials
from protos.evaluator.v1 import evaluator_service_pb2 as pb
from protos.evaluator.v1 import evaluator_service_pb2_grpc as rpc
from protos.events.v1 import evaluation_pb2
from shared import operators, topics
from shared.ports import open_ports
from shared.service import Service, Servicer
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.integration.evaluator.pipeline import OPERATOR, SETTINGS, kernel_source, opened
from tests.loopback import called, refusal

MEMORY = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
ENVIRONMENT = {"EVALUATOR_CHIP": "simulated", "SIMULATED_MEDIAN_S": "0.001", "SIMULATED_LONGEST_S": "0.01"}
TOY = "class Model:\n    pass\ndef get_inputs():\n    pass\ndef get_init_inputs():\n    pass\n"


def asking(**changes) -> pb.EvaluateRequest:
    fields = {"operator_name": "toy", "operator_source": TOY, "language": "cpp", "kernel_source": "int x;"}
    return pb.EvaluateRequest(**{**fields, **changes})


@asynccontextmanager
async def worker(**environment: str):
    """A stub of a worker, its on-demand part and its ports; its pool does not run."""
    async with open_ports(MEMORY) as ports:
        from evaluator_svc import grpc_api

        evaluator = evaluator_of(ports, from_env(ENVIRONMENT | environment))
        on_demand = OnDemand(ports.store, evaluator, Worker(ports, evaluator))
        servicer = Servicer(
            name=service.SERVICER, add=lambda server: grpc_api.add(on_demand, Trials(evaluator), server)
        )
        async with called([Service(name="evaluator", servicers=(servicer,), close=evaluator.close)], ports) as channel:
            yield rpc.EvaluatorServiceStub(channel), on_demand, ports


async def told(call) -> tuple[list[str], evaluation_pb2.Evaluation]:
    updates = [update async for update in call]
    kinds = [update.WhichOneof("update") for update in updates]
    assert (kinds[0], kinds[-1]) == ("understood", "evaluation")
    assert set(kinds[1:-1]) <= {"stage", "result"}
    return [update.stage for update in updates if update.WhichOneof("update") == "stage"], updates[-1].evaluation


async def stage(call) -> str:
    """The next stage that begins."""
    while (update := await call.read()).WhichOneof("update") != "stage":
        pass
    return update.stage


@on_loop
async def test_stages_are_streamed_and_then_the_verdict_and_nothing_is_published():
    async with worker() as (stub, _, ports):
        stages, evaluation = await told(stub.Evaluate(asking()))
        assert stages == ["queued", "admission", "timing"]
        assert evaluation.status != evaluation_pb2.STATUS_UNSPECIFIED
        assert not evaluation.memoised
        assert [delivery async for delivery in ports.bus.history(topics.FACTS)] == []
        stages, again = await told(stub.Evaluate(asking()))
        assert (stages, again.memoised, again.status) == (["queued"], True, evaluation.status)
        _, final = await told(stub.Evaluate(asking(purpose=evaluation_pb2.PURPOSE_FINAL)))
        assert not final.memoised


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (asking(operator_source="class Model: ..."), "toy: has no function `get_inputs`"),
        (asking(operator_source="def ("), "toy:1: syntax error"),
        (asking(chip="nvidia-sm_90"), "chip: is `nvidia-sm_90`, this worker's is `simulated`"),
        (asking(language="cobol"), "language: is `cobol` (chip `simulated` takes cpp)"),
        (asking(threads=10**6), "threads: is 1000000, this worker offers 1 to"),
        (asking(threads=-1), "threads: is -1"),
        (asking(operator_name="two\nlines"), "operator_name: is not one line of at most 200 characters"),
        (asking(kernel_source=" "), "kernel_source: is empty"),
        (asking(purpose=99), "purpose: Purpose has no value 99"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_one_line(request_, line):
    @on_loop
    async def check():
        async with worker() as (stub, _, _):
            code, message = await refusal(stub.Evaluate(request_).read())
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert line in message
        assert "\n" not in message

    check()


@on_loop
async def test_cancelling_the_stream_ends_the_evaluation_and_frees_its_place():
    async with worker(EVALUATOR_SLOTS="1") as (stub, on_demand, ports):
        call = stub.Evaluate(asking(kernel_source=STALLS))
        assert [await stage(call) for _ in range(2)] == ["queued", "admission"]
        waiting = stub.Evaluate(asking())
        assert await stage(waiting) == "queued"
        assert on_demand.busy == 1
        call.cancel()
        assert [update async for update in waiting][-1].WhichOneof("update") == "evaluation"
        assert on_demand.busy == 0
        assert len([key async for key, _ in ports.store.documents.scan(COLLECTION)]) == 1


@on_loop
async def test_an_evaluation_that_outlasts_its_deadline_is_ended_and_nobodys_fault():
    async with worker(EVALUATOR_DEADLINE_S="0.05") as (stub, on_demand, _):
        _, evaluation = await told(stub.Evaluate(asking(kernel_source=STALLS)))
        assert evaluation.status == evaluation_pb2.STATUS_INFRASTRUCTURE
        assert evaluation.evidence[0].value == "not done within the deadline of 0.05 s"
        assert on_demand.busy == 0


@on_loop
async def test_a_worker_describes_itself_and_takes_nothing_once_it_drains():
    async with worker() as (stub, on_demand, _):
        call = stub.Evaluate(asking(kernel_source=STALLS))
        while await stage(call) != "admission":
            pass
        described = await stub.Describe(pb.DescribeRequest())
        assert (described.worker_id, described.chip) == (on_demand.worker.id, "simulated")
        assert list(described.languages) == ["cpp"]
        assert (described.harness_version, described.slots, described.busy) == (HARNESS_VERSION, 2, 1)
        assert described.environment[0].name == "simulated"
        call.cancel()
        on_demand.worker.draining = True
        assert (await stub.Describe(pb.DescribeRequest())).draining
        code, line = await refusal(stub.Evaluate(asking()).read())
        assert code is grpc.StatusCode.UNAVAILABLE
        assert line == "this worker is draining"


@on_loop
async def test_the_service_that_runs_serves_it():
    async with open_ports(MEMORY) as ports:
        built = service.build(ports, from_env(ENVIRONMENT))
        async with called([built], ports) as channel:
            assert (await rpc.EvaluatorServiceStub(channel).Describe(pb.DescribeRequest())).slots == 2


@pytest.mark.serial
@pytest.mark.timeout(300)
@on_loop
async def test_cancelling_the_stream_kills_the_kernel_that_runs_on_the_machine():
    spec = operators.load(OPERATOR)
    asked = asking(operator_source=spec.source, kernel_source=kernel_source("endless_loop"))
    ours = psutil.Process()
    async with opened(replace(SETTINGS, limits=replace(SETTINGS.limits, call_s=100.0))) as (ports, evaluator):
        built = service.build(ports, evaluator.settings, evaluator=evaluator)
        async with called([replace(built, close=None)], ports) as channel:
            call = rpc.EvaluatorServiceStub(channel).Evaluate(asked)
            while await stage(call) != "correctness":
                pass
            while not any(busy(child) for child in ours.children(recursive=True) if is_runner(child)):
                await asyncio.sleep(0.05)
            call.cancel()
            while any(is_runner(child) for child in ours.children(recursive=True)):
                await asyncio.sleep(0.05)


def is_runner(process: psutil.Process) -> bool:
    try:
        return str(runner_program()) in process.cmdline() or process.name() == runner_program().name
    except psutil.Error:
        return False


def busy(process: psutil.Process) -> bool:
    try:
        return process.cpu_times().user > 0.3
    except psutil.Error:
        return False
