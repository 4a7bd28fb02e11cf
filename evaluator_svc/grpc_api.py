"""``protos.evaluator.v1.EvaluatorService``: message in, message out; errors become statuses in ``shared.rpc``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from evaluator_svc.on_demand import Kept, OnDemand, Understood, Update
from evaluator_svc.requested import Asked, Foreign
from evaluator_svc.settings import HARNESS_VERSION
from evaluator_svc.telling import Ended
from evaluator_svc.trials import Trials
from protos.evaluator.v1 import evaluator_service_pb2 as pb
from protos.evaluator.v1 import evaluator_service_pb2_grpc as rpc
from shared import chips, proto_codec
from shared.errors import Poison, UserError
from shared.events import Purpose
from shared.trial_build import BuildErrors, TrialKernel

Context = grpc.aio.ServicerContext[Any, Any]


class EvaluatorServicer(rpc.EvaluatorServiceServicer):
    """Speaks for this worker alone: which one answers is the load balancer's choice."""

    def __init__(self, on_demand: OnDemand, trials: Trials) -> None:
        self._on_demand, self._trials = on_demand, trials

    async def Evaluate(self, request: pb.EvaluateRequest, context: Context) -> AsyncIterator[pb.EvaluateResponse]:
        """See the proto file."""
        async with aclosing(self._on_demand.evaluate(_asked(request))) as updates:
            async for update in updates:
                yield _told(update)

    async def Build(self, request: pb.BuildRequest, context: Context) -> pb.BuildResponse:
        """See the proto file."""
        kernel = TrialKernel(
            chip=request.chip,
            language=request.language,
            source=request.kernel_source,
            flags=tuple(request.flags),
            entry=request.entry,
        )
        found = await self._trials.build(kernel)
        if isinstance(found, BuildErrors):
            status: Any = proto_codec.number(found.status)
            return pb.BuildResponse(status=status, text=found.text)
        return pb.BuildResponse(built=True)

    async def GetLedger(self, request: pb.GetLedgerRequest, context: Context) -> pb.GetLedgerResponse:
        """See the proto file."""
        return pb.GetLedgerResponse(ledger=await self._on_demand.ledger(request.ledger_hash))

    async def Describe(self, request: pb.DescribeRequest, context: Context) -> pb.DescribeResponse:
        """See the proto file."""
        worker = self._on_demand.worker
        return pb.DescribeResponse(
            worker_id=worker.id,
            chip=worker.chip,
            languages=chips.load(worker.chip).languages,
            harness_version=HARNESS_VERSION,
            slots=worker.slots,
            busy=worker.busy + self._on_demand.busy,
            draining=worker.draining,
            environment=[proto_codec.to_message(entry) for entry in self._on_demand.environment()],  # type: ignore[misc]
        )


def add(on_demand: OnDemand, trials: Trials, server: grpc.aio.Server) -> None:
    """Serve ``on_demand`` and ``trials`` on ``server``."""
    rpc.add_EvaluatorServiceServicer_to_server(EvaluatorServicer(on_demand, trials), server)


def _told(update: Update) -> pb.EvaluateResponse:
    match update:
        case str():
            return pb.EvaluateResponse(stage=update)
        case Understood():
            understood = pb.Understood(
                operator_name=update.operator_name,
                operator_hash=update.operator_hash,
                kernel_hash=update.kernel_hash,
                language=update.language,
                form=update.form,
            )
            return pb.EvaluateResponse(understood=understood)
        case Ended():
            facts: list[Any] = [proto_codec.to_message(fact) for fact in update.facts]
            result = pb.StageResult(
                stage=update.stage, elapsed_ns=update.elapsed_ns, outcome=update.outcome, facts=facts
            )
            return pb.EvaluateResponse(result=result)
        case Kept():
            return pb.EvaluateResponse(ledger=update.ledger)
        case _:
            return pb.EvaluateResponse(evaluation=proto_codec.to_message(update))  # type: ignore[arg-type]


def _asked(request: pb.EvaluateRequest) -> Asked:
    try:
        purpose = proto_codec.member(Purpose, request.purpose, "purpose") or Purpose.SEARCH
    except Poison as error:
        raise UserError(str(error), where="purpose") from error
    foreign = None
    if request.HasField("definition"):
        given = request.definition
        foreign = Foreign(definition=given.definition, workload=given.workload, reference=given.reference)
    return Asked(
        operator_name=request.operator_name,
        operator_source=request.operator_source,
        foreign=foreign,
        language=request.language,
        kernel_source=request.kernel_source,
        flags=tuple(request.flags),
        solution=request.solution,
        entry=request.entry,
        chip=request.chip,
        threads=request.threads,
        purpose=purpose,
        with_ledger=request.with_ledger,
    )
