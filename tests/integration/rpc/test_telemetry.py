"""Calls are counted by method and status, part of their caller's trace, and named in log lines."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from protos.search.v1 import search_service_pb2 as pb
from protos.search.v1 import search_service_pb2_grpc
from shared import logs, metrics
from shared.errors import NotFound
from tests.aio import on_loop
from tests.integration.rpc.toys import NAME, Toy, a_get, toy_server

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def scraped(address: str) -> str:
    def get() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(get)


def counted(text: str, method: str, code: str) -> bool:
    return f'kernelevolve_grpc_calls_total{{code="{code}",method="{NAME}/{method}"}} 1.0' in text


def choosy(search_id: str) -> pb.Search:
    if search_id == "absent":
        raise NotFound("is unknown", where="search absent")
    if search_id == "broken":
        raise RuntimeError("a fault of ours")
    return pb.Search(search_id=search_id)


@on_loop
async def test_calls_are_counted_and_timed_by_method_and_status() -> None:
    toy = Toy(get=choosy)
    with metrics.serving("127.0.0.1:0") as address:
        async with toy_server(toy) as server, grpc.aio.insecure_channel(server) as channel:
            stub = search_service_pb2_grpc.SearchServiceStub(channel)
            await stub.Get(a_get())
            for name in ("absent", "broken"):
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.Get(a_get(name))
            stream = stub.Watch(pb.WatchRequest(search_id="s"))
            await stream.read()
            stream.cancel()
            await toy.freed.wait()
        text = await scraped(address)
    assert counted(text, "Get", "OK")
    assert counted(text, "Get", "NOT_FOUND")
    assert counted(text, "Get", "INTERNAL")
    assert counted(text, "Watch", "CANCELLED")
    assert f'kernelevolve_grpc_call_seconds_count{{method="{NAME}/Get"}} 3.0' in text


@on_loop
async def test_a_call_is_part_of_its_callers_trace_and_names_its_log_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    lines: list[dict[str, str]] = []

    def get(search_id: str) -> pb.Search:
        record = logging.makeLogRecord({"msg": "asked", "name": "toy"})
        lines.append(json.loads(logs.JsonLines(logs.Redaction({})).format(record)))
        return pb.Search(search_id=search_id)

    async with toy_server(Toy(get=get)) as server, grpc.aio.insecure_channel(server) as channel:
        stub = search_service_pb2_grpc.SearchServiceStub(channel)
        await stub.Get(a_get(), metadata=(("traceparent", TRACEPARENT),))
    (span,) = exporter.get_finished_spans()
    assert span.name == f"{NAME}/Get"
    assert f"{span.context.trace_id:032x}" == TRACEPARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == TRACEPARENT.split("-")[2]
    (line,) = lines
    assert line["call"] == f"{NAME}/Get"
    assert line["trace_id"] == TRACEPARENT.split("-")[1]
    provider.shutdown()
