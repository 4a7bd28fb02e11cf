"""``protos.synthesizer.v1.SynthesizerService``: message in, message out; errors become statuses in ``shared.rpc``."""

from __future__ import annotations

from typing import Any

import grpc

from protos.synthesizer.v1 import synthesizer_service_pb2 as pb
from protos.synthesizer.v1 import synthesizer_service_pb2_grpc as rpc
from shared import proto_codec
from shared.errors import Poison, UserError
from shared.events import CandidateProduced, CandidateRejected, ExpansionRequested
from synthesizer_svc.generate import Generated, Generator

COUNT_MAX = 64
"""Candidates of one call: each takes a place in the answer, which has a limit too."""

Context = grpc.aio.ServicerContext[Any, Any]


class SynthesizerServicer(rpc.SynthesizerServiceServicer):
    """Answers are remembered in the store, so any replica answers."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        """See the proto file."""
        return _response(await self._generator.generate(_expansion(request), request.blobs))


def add(generator: Generator, server: grpc.aio.Server) -> None:
    """Serve ``generator`` on ``server``."""
    rpc.add_SynthesizerServiceServicer_to_server(SynthesizerServicer(generator), server)


def _expansion(request: pb.GenerateRequest) -> ExpansionRequested:
    try:
        expansion = proto_codec.from_message(ExpansionRequested, request.expansion)
    except Poison as error:
        raise UserError(str(error), where="expansion") from error
    assert isinstance(expansion, ExpansionRequested)
    if not 1 <= expansion.count <= COUNT_MAX:
        raise UserError(f"is {expansion.count}, expected 1 to {COUNT_MAX}", where="expansion.count")
    if not expansion.languages:
        raise UserError("names no language", where="expansion.languages")
    if expansion.threads < 1:
        raise UserError(f"is {expansion.threads}, expected 1 or more", where="expansion.threads")
    return expansion


def _response(generated: Generated) -> pb.GenerateResponse:
    response = pb.GenerateResponse(blobs=generated.blobs)
    for fact in generated.facts:
        message: Any = proto_codec.to_message(fact)
        if isinstance(fact, CandidateProduced):
            response.candidates.append(message)
        elif isinstance(fact, CandidateRejected):
            response.rejected.append(message)
        else:
            response.failed.CopyFrom(message)
    return response
