"""Whatever a request message holds: an answer, or one clear line; never a fault of the server's own."""

from __future__ import annotations

import asyncio
import base64
import logging
import random
from contextlib import suppress
from dataclasses import replace

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from deploy import together
from protos.evaluator.v1 import evaluator_service_pb2 as evaluator
from protos.events.v1 import search_pb2
from protos.knowledge.v1 import knowledge_service_pb2 as knowledge
from protos.operations.v1 import operations_service_pb2 as operations
from protos.search.v1 import search_service_pb2 as search
from protos.synthesizer.v1 import synthesizer_service_pb2 as synthesizer
from shared.ports import open_ports
from tests.aio import on_loop
from tests.integration.operations.test_dead_letters import CHIP, ENVIRONMENT, MEMORY, TOY
from tests.loopback import called

FILES = (search, synthesizer, evaluator, knowledge, operations)
METHODS = [
    method for file in FILES for service in file.DESCRIPTOR.services_by_name.values() for method in service.methods
]
REQUESTS = 40
LINE_BYTES_MAX = 400
OURS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}
PATIENCE_S = 2.0
ANSWERS_READ = 3

TEXTS = [
    "", "x", CHIP, "\0", "a\nb", "x" * 100_000, "é" * 20_000, "../../etc/passwd", "$where", "a.b", " ",
    "\u2028", "\U0001f980",
    *(base64.urlsafe_b64encode(raw).decode() for raw in (b"\xff", b"0", b"-1", b"9" * 30, b"\0", b"z" * 5000)),
]  # fmt: skip
"""Names, none of which exists, and page tokens that no server made."""
EXTREMES = [0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1, 10**6]
BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64),
    FieldDescriptor.CPPTYPE_ENUM: (-(2**31), 2**31),
}
REALS = [0.0, -1.0, 1e308, float("nan"), float("inf")]
DEPTH_MAX = 3
GOOD = {
    "SubmitRequest": search.SubmitRequest(
        operator=search.OperatorSource(name="toy", source=TOY), chip=CHIP, budget=search_pb2.Budget(evaluations=2)
    ),
    "EvaluateRequest": evaluator.EvaluateRequest(
        operator_name="toy", operator_source=TOY, language="cpp", kernel_source="int x;"
    ),
    "PutDocumentRequest": knowledge.PutDocumentRequest(
        document_id="guidance/zebra",
        text='+++\nid = "guidance/zebra"\ntitle = "Z"\nconcern = "guidance"\nsummary = "S."\n+++\nText.\n',
    ),
}
"""Requests that would be answered: what is hostile about one of their fields is not hidden by the others."""


class Hostile:
    """Requests with one field, or several, set to anything."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def message(self, descriptor, depth: int = 0):
        message = GetMessageClass(descriptor)()
        if (good := GOOD.get(descriptor.name)) and self._random.random() < 0.8:
            message.CopyFrom(good)
        fields = list(descriptor.fields)
        for field in self._random.sample(fields, min(len(fields), self._random.randint(0, 3))):
            self._set(message, field, depth)
        return message

    def _set(self, message, field: FieldDescriptor, depth: int) -> None:
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            getattr(message, field.name)[self._random.choice(TEXTS)] = self._scalar(inner.fields_by_name["value"])
        elif inner is not None:
            value = self.message(inner, depth + 1) if depth < DEPTH_MAX else GetMessageClass(inner)()
            target = getattr(message, field.name)
            target.append(value) if field.is_repeated else target.CopyFrom(value)
        elif field.is_repeated:
            getattr(message, field.name).extend(self._scalar(field) for _ in range(self._random.randint(0, 3)))
        else:
            setattr(message, field.name, self._scalar(field))

    def _scalar(self, field: FieldDescriptor):
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._random.randbytes(self._random.randint(0, 64))
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return self._random.choice(TEXTS)
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return self._random.random() < 0.5
        if field.cpp_type in BOUNDS:
            low, end = BOUNDS[field.cpp_type]
            return self._random.choice([number for number in EXTREMES if low <= number < end])
        return self._random.choice(REALS)


async def outcome(channel, method: MethodDescriptor, request) -> tuple[grpc.StatusCode, str]:
    """How the call ends; a stream that goes on is left after a few answers."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    answer = GetMessageClass(method.output_type)
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    call = make(path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString)(
        request
    )
    try:
        if not method.server_streaming:
            await call
        else:
            with suppress(TimeoutError):  # a watch of a search that goes on
                async with asyncio.timeout(PATIENCE_S):
                    for _ in range(ANSWERS_READ):
                        if await call.read() is grpc.aio.EOF:
                            break
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    finally:
        call.cancel()
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
def test_every_request_is_answered_or_refused_with_one_clear_line(method, caplog):
    @on_loop
    async def check():
        hostile = Hostile(seed=7)
        async with open_ports(MEMORY) as ports:
            quiet = [replace(each, subscriptions=(), background=()) for each in together.services(ports, ENVIRONMENT)]
            async with called(quiet, ports) as channel:
                for request in (hostile.message(method.input_type) for _ in range(REQUESTS)):
                    code, line = await outcome(channel, method, request)
                    told = f"{method.name}({str(request)[:300]}) -> {code} {line[:300]}"
                    assert code not in OURS, told
                    assert len(line.encode()) <= LINE_BYTES_MAX, told
                    assert len(line.splitlines()) <= 1, told
                    assert bool(line) == (code is not grpc.StatusCode.OK), told

    with caplog.at_level(logging.ERROR):
        check()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
