"""What any client of a server meets: reflection, health, statuses, limits, cancelling and draining."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from protos.search.v1 import search_service_pb2 as pb
from protos.search.v1 import search_service_pb2_grpc
from shared.errors import (
    AlreadyExists,
    Conflict,
    Fatal,
    NotFound,
    Poison,
    ReplayDivergence,
    Retryable,
    Unavailable,
    UserError,
)
from shared.health import Phase
from shared.process import run
from shared.redaction import never_show
from shared.rpc.client import options as client_options
from shared.rpc.server import options as server_options
from shared.rpc.settings import ClientSettings, ServerSettings
from tests.aio import on_loop
from tests.integration.rpc.toys import NAME, Toy, a_get, ready, stub_of, toy_server
from tests.integration.search_svc.replica import fresh_ports
from tests.servers import free_port

Code = grpc.StatusCode


def raising(error: Exception):
    def get(search_id):
        raise error

    return get


async def failure(call) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def detail(error: grpc.aio.AioRpcError, message):
    """The detail of ``message``'s type in a rich status, or None."""
    rich = rpc_status.from_call(error)
    for packed in rich.details:
        if packed.Unpack(message):
            return message
    return None


async def reflect(channel, **question):
    """One question to the reflection service, as grpcurl asks it."""
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(**question))
    await call.done_writing()
    return await call.read()


@on_loop
async def test_reflection_lists_the_services_and_describes_a_method_with_its_messages():
    async with toy_server(Toy()) as address, grpc.aio.insecure_channel(address) as channel:
        listed = await reflect(channel, list_services="")
        names = [service.name for service in listed.list_services_response.service]
        assert names == ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", NAME]

        described = await reflect(channel, file_containing_symbol=NAME)
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(raw)
            for raw in described.file_descriptor_response.file_descriptor_proto
        ]
        found = next(file for file in files if file.package == "protos.search.v1")
        methods = {method.name: method.input_type for method in found.service[0].method}
        assert methods["Submit"] == ".protos.search.v1.SubmitRequest"


@on_loop
async def test_health_follows_the_service_and_the_whole_server():
    state = ready()
    async with toy_server(Toy(), health=state) as address, grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest(service=name)) for name in ("", NAME)]
        serving = health_pb2.HealthCheckResponse.SERVING
        assert [(await watch.read()).status for watch in watches] == [serving, serving]
        state.phase = Phase.RECOVERING
        not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
        assert [(await watch.read()).status for watch in watches] == [not_serving, not_serving]
        for watch in watches:
            watch.cancel()
        unknown = await failure(stub.Check(health_pb2.HealthCheckRequest(service="protos.other.v1.Other")))
        assert unknown.code() is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (UserError("is wrong", where="budget", hint="give another"), Code.INVALID_ARGUMENT, "USER_ERROR"),
        (NotFound("is not known", where="search s"), Code.NOT_FOUND, "NOT_FOUND"),
        (AlreadyExists("is taken", where="id r"), Code.ALREADY_EXISTS, "ALREADY_EXISTS"),
        (Poison("not a message"), Code.INVALID_ARGUMENT, "POISON"),
        (Unavailable("the store does not answer"), Code.UNAVAILABLE, "UNAVAILABLE"),
        (Retryable("busy"), Code.UNAVAILABLE, "RETRYABLE"),
        (Conflict("another owner"), Code.UNAVAILABLE, "CONFLICT"),
        (ReplayDivergence(3, "a", "b"), Code.DATA_LOSS, "REPLAY_DIVERGENCE"),
    ],
)
@on_loop
async def test_what_a_servicer_raises_is_a_status_with_its_reason_and_the_one_clear_line(error, code, reason):
    async with toy_server(Toy(get=raising(error))) as address, grpc.aio.insecure_channel(address) as channel:
        failed = await failure(search_service_pb2_grpc.SearchServiceStub(channel).Get(a_get()))
    assert (failed.code(), failed.details()) == (code, str(error))
    info = detail(failed, error_details_pb2.ErrorInfo())
    assert (info.reason, info.domain) == (reason, "kernelevolve")


@on_loop
async def test_a_status_and_its_details_tell_no_secret():
    never_show("ke/planted-in-a-status")
    error = UserError("is ke/planted-in-a-status", where="redis://me:pass@host", hint=r"not ke\/planted-in-a-status")
    async with toy_server(Toy(get=raising(error))) as address, grpc.aio.insecure_channel(address) as channel:
        failed = await failure(search_service_pb2_grpc.SearchServiceStub(channel).Get(a_get()))
    assert failed.details() == "redis://…@host: is … (not …)"
    told = repr([failed.trailing_metadata(), detail(failed, error_details_pb2.ErrorInfo())])
    assert "planted" not in told
    assert "pass" not in told


@on_loop
async def test_a_mistake_names_its_field_and_an_outage_says_when_to_try_again():
    toy = Toy(get=raising(UserError("must be positive", where="budget.evaluations")))
    async with toy_server(toy) as address, grpc.aio.insecure_channel(address) as channel:
        stub = search_service_pb2_grpc.SearchServiceStub(channel)
        violations = detail(await failure(stub.Get(a_get())), error_details_pb2.BadRequest()).field_violations
        assert [(v.field, v.description) for v in violations] == [("budget.evaluations", "must be positive")]
        toy.get = raising(Unavailable("the store does not answer"))
        assert detail(await failure(stub.Get(a_get())), error_details_pb2.RetryInfo()).retry_delay.seconds == 1


@pytest.mark.parametrize("error", [Fatal("password 1234 of the store"), KeyError("password 1234 of the store")])
@on_loop
async def test_a_bug_is_internal_and_its_text_is_in_the_log_alone(error, caplog):
    async with toy_server(Toy(get=raising(error))) as address, grpc.aio.insecure_channel(address) as channel:
        failed = await failure(search_service_pb2_grpc.SearchServiceStub(channel).Get(a_get()))
    assert failed.code() is Code.INTERNAL
    assert "1234" not in failed.details()
    incident = failed.details().split()[-1]
    record = next(record for record in caplog.records if incident in record.getMessage())
    assert "1234" in str(record.exc_info[1])


@on_loop
async def test_a_message_of_100_mb_is_refused_and_the_connection_goes_on():
    async with toy_server(Toy()) as address, grpc.aio.insecure_channel(address) as channel:
        stub = search_service_pb2_grpc.SearchServiceStub(channel)
        failed = await failure(stub.Get(a_get("x" * 100_000_000)))
        assert failed.code() is Code.RESOURCE_EXHAUSTED
        assert (await stub.Get(a_get("small"))).search.search_id == "small"


@on_loop
async def test_more_calls_than_the_server_takes_are_refused():
    toy = Toy()
    async with toy_server(toy, calls_max=1) as address, grpc.aio.insecure_channel(address) as channel:
        stub = search_service_pb2_grpc.SearchServiceStub(channel)
        first = stub.Get(a_get("held"))
        await toy.entered.wait()
        assert (await failure(stub.Get(a_get()))).code() is Code.RESOURCE_EXHAUSTED
        toy.hold.set()
        await first


@on_loop
async def test_a_clients_deadline_ends_the_call_and_frees_the_handler():
    toy = Toy()
    async with toy_server(toy) as address, grpc.aio.insecure_channel(address) as channel:
        failed = await failure(search_service_pb2_grpc.SearchServiceStub(channel).Get(a_get("held"), timeout=0.2))
        assert failed.code() is Code.DEADLINE_EXCEEDED


@on_loop
async def test_a_client_without_a_deadline_gets_the_servers():
    toy = Toy()
    async with toy_server(toy, deadline_max_s=0.1) as address, grpc.aio.insecure_channel(address) as channel:
        failed = await failure(search_service_pb2_grpc.SearchServiceStub(channel).Get(a_get("held")))
        assert failed.code() is Code.DEADLINE_EXCEEDED
        assert failed.details() == "the server gives this call 0.1 s"


@on_loop
async def test_our_own_channel_asks_for_the_deadline_of_the_method():
    remaining = []

    class Asked(Toy):
        async def Get(self, request, context):  # noqa: N802
            remaining.append(context.time_remaining())
            return pb.GetResponse()

    async with toy_server(Asked()) as address, stub_of(address) as stub:
        await stub.Get(a_get())
    assert remaining[0] == pytest.approx(30, abs=5)


@on_loop
async def test_a_cancelled_stream_frees_its_handler():
    toy = Toy()
    async with toy_server(toy) as address, stub_of(address) as stub:
        watch = stub.Watch(pb.WatchRequest(search_id="s"))
        async for _ in watch:
            break
        await toy.entered.wait()
        watch.cancel()
        await toy.freed.wait()


class Draining:
    """A server that is told to stop while calls are in progress."""

    def __init__(self, toy: Toy, **settings) -> None:
        self._stop = asyncio.Event()
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(toy, settings))

    async def _serve(self, toy, settings):
        async with toy_server(toy, **settings) as address:
            self.address.set_result(address)
            await self._stop.wait()

    def stop(self) -> None:
        self._stop.set()

    async def stopped(self) -> None:
        await self._task


@on_loop
async def test_a_draining_server_lets_calls_end_and_sends_watchers_elsewhere():
    toy = Toy()
    server = Draining(toy, drain_s=30.0)
    async with grpc.aio.insecure_channel(await server.address) as channel:
        stub = search_service_pb2_grpc.SearchServiceStub(channel)
        unary = asyncio.ensure_future(stub.Get(a_get("held")))
        chunks = aiter(stub.ExportLog(pb.ExportLogRequest()))
        watch = aiter(stub.Watch(pb.WatchRequest(search_id="s")))
        assert (await anext(chunks)).chunk == b"first"
        await anext(watch)
        server.stop()
        cut = await failure(anext(watch))
        assert (cut.code(), cut.details()) == (
            Code.UNAVAILABLE,
            "the server is stopping: call again from the last answer",
        )
        toy.hold.set()
        assert (await anext(chunks)).chunk == b"last"
        assert (await unary).search.search_id == "held"
        await server.stopped()


@on_loop
async def test_calls_that_outlast_the_drain_are_cut():
    toy = Toy()
    server = Draining(toy, drain_s=0.1)
    async with grpc.aio.insecure_channel(await server.address) as channel:
        held = asyncio.ensure_future(search_service_pb2_grpc.SearchServiceStub(channel).Get(a_get("held")))
        await toy.entered.wait()
        server.stop()
        await server.stopped()
        assert (await failure(held)).code() in (Code.UNAVAILABLE, Code.CANCELLED)


@on_loop
async def test_a_port_that_is_taken_is_refused_in_one_line():
    async with toy_server(Toy()) as address:
        with pytest.raises(UserError, match="GRPC_LISTEN: cannot listen on"):
            async with toy_server(Toy(), listen=address):
                pass


@on_loop
async def test_a_running_service_is_served_where_its_settings_say_until_it_is_told_to_stop():
    address, stop = f"127.0.0.1:{free_port()}", asyncio.Event()
    service = Toy().service()
    ports = await fresh_ports()
    async with ports.bus, stub_of(address, retry_pause_s=0.05) as stub:
        process = asyncio.create_task(run([service], ports, stop, rpc=ServerSettings(listen=address)))
        assert (await stub.Get(a_get())).search.search_id == "s"
        stop.set()
        await process
        assert (await failure(stub.Get(a_get(), timeout=0.2))).code() in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)


@pytest.mark.parametrize(
    "side", [server_options(ServerSettings()), client_options(ClientSettings(server="localhost:1"))]
)
def test_every_channel_option_is_one_that_grpc_knows(side):
    """It ignores those it does not know: a misspelt ping interval once cut off every silent watch."""
    driver = Path(grpc.__file__).parent.joinpath("_cython")
    known = b"".join(path.read_bytes() for path in driver.glob("cygrpc*.so"))
    assert [name for name, _ in side if name.encode() + b"\0" not in known] == []
