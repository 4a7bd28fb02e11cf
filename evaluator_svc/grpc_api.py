"""``protos.evaluator.v1.EvaluatorService``: message in, message out; errors become statuses in ``shared.rpc``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from evaluator_svc.on_demand import Asked, OnDemand
from evaluator_svc.settings import HARNESS_VERSION
from protos.evaluator.v1 import evaluator_service_pb2 as pb
from protos.evaluator.v1 import evaluator_service_pb2_grpc as rpc
from shared import chips, proto_codec
from shared.errors import Poison, UserError
from shared.events import Purpose

Context = grpc.aio.ServicerContext[Any, Any]


class EvaluatorServicer(rpc.EvaluatorServiceServicer):
    """Speaks for this worker alone: which one answers is the load balancer's choice."""

    def __init__(self, on_demand: OnDemand) -> None:
        self._on_demand = on_demand

    async def Evaluate(self, request: pb.EvaluateRequest, context: Context) -> AsyncIterator[pb.EvaluateResponse]:
        """See the proto file."""
        async with aclosing(self._on_demand.evaluate(_asked(request))) as updates:
            async for update in updates:
                if isinstance(update, str):
                    yield pb.EvaluateResponse(stage=update)
                else:
                    yield pb.EvaluateResponse(evaluation=proto_codec.to_message(update))  # type: ignore[arg-type]

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


def add(on_demand: OnDemand, server: grpc.aio.Server) -> None:
    """Serve ``on_demand`` on ``server``."""
    rpc.add_EvaluatorServiceServicer_to_server(EvaluatorServicer(on_demand), server)


def _asked(request: pb.EvaluateRequest) -> Asked:
    try:
        purpose = proto_codec.member(Purpose, request.purpose, "purpose") or Purpose.SEARCH
    except Poison as error:
        raise UserError(str(error), where="purpose") from error
    return Asked(
        operator_name=request.operator_name,
        operator_source=request.operator_source,
        language=request.language,
        kernel_source=request.kernel_source,
        flags=tuple(request.flags),
        entry=request.entry or "ke_launch",
        chip=request.chip,
        threads=request.threads,
        purpose=purpose,
    )
