"""Bearer tokens and roles, as a client meets them."""

from __future__ import annotations

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from protos.evaluator.v1 import evaluator_service_pb2
from protos.knowledge.v1 import knowledge_service_pb2
from protos.operations.v1 import operations_service_pb2
from protos.search.v1 import search_service_pb2 as pb
from protos.synthesizer.v1 import synthesizer_service_pb2
from shared.errors import NotAllowed, Unauthenticated, UserError
from shared.rpc import tokens
from shared.rpc.errors import as_ours
from shared.rpc.methods import METHODS
from shared.rpc.tokens import Role
from tests.aio import on_loop
from tests.integration.rpc.toys import Toy, a_get, stub_of, toy_server

FILES = (evaluator_service_pb2, knowledge_service_pb2, operations_service_pb2, pb, synthesizer_service_pb2)


@pytest.fixture
def file(tmp_path):
    """A token file, and the token of each role."""
    given = {role: tokens.mint() for role in Role}
    path = tmp_path / "tokens.toml"
    path.write_text(
        "\n".join(tokens.table(f"a-{role.word}er", role, tokens.fingerprint(token)) for role, token in given.items())
    )
    return str(path), given


@on_loop
async def test_a_call_without_a_token_or_with_a_wrong_one_is_unauthenticated(file):
    path, _ = file
    async with toy_server(Toy(), tokens=path) as address:
        async with stub_of(address) as stub:
            with (
                pytest.raises(Unauthenticated, match="Get: the call carries no bearer token .*KERNELEVOLVE_TOKEN"),
                as_ours(address),
            ):
                await stub.Get(a_get())
        async with stub_of(address, token=tokens.mint()) as stub:
            with pytest.raises(Unauthenticated, match="Get: the server does not know this token"), as_ours(address):
                await stub.Get(a_get())


@on_loop
async def test_a_role_that_is_too_low_is_told_what_is_needed(file):
    path, given = file
    async with toy_server(Toy(), tokens=path) as address, stub_of(address, token=given[Role.READ]) as stub:
        assert (await stub.Get(a_get())).search.search_id == "s"
        with (
            pytest.raises(NotAllowed, match="Cancel: needs role submit, token `a-reader` has role read"),
            as_ours(address),
        ):
            await stub.Cancel(pb.CancelRequest(search_id="s"))


@on_loop
async def test_a_stream_needs_a_token_too(file):
    path, given = file
    async with toy_server(Toy(), tokens=path) as address:
        async with stub_of(address) as stub:
            with pytest.raises(Unauthenticated), as_ours(address):
                async for _ in stub.Watch(pb.WatchRequest()):
                    pass
        async with stub_of(address, token=given[Role.READ]) as stub:
            async for _ in stub.Watch(pb.WatchRequest()):
                break


@on_loop
async def test_each_role_may_do_what_those_before_it_may(file):
    path, given = file
    async with toy_server(Toy(), tokens=path) as address:
        for role in (Role.SUBMIT, Role.ADMIN):
            async with stub_of(address, token=given[role]) as stub:
                await stub.Get(a_get())
                await stub.Cancel(pb.CancelRequest(search_id="s"))


@on_loop
async def test_health_needs_no_token(file):
    path, _ = file
    async with toy_server(Toy(), tokens=path) as address, grpc.aio.insecure_channel(address) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", r"holds no \[tokens.NAME\] tables"),
        ("tokens = 3", r"holds no \[tokens.NAME\] tables"),
        ("[tokens.a\n", "is not TOML"),
        ('[tokens.a]\nrole = "submit"\n', "tokens.a must have exactly role and sha256"),
        ('[tokens.a]\nrole = "root"\nsha256 = "%s"\n' % ("0" * 64), "tokens.a: role is 'root', expected one of read,"),
        ('[tokens.a]\nrole = "read"\nsha256 = "secret"\n', "tokens.a.sha256 is not a SHA-256"),
    ],
)
def test_a_token_file_that_is_wrong_is_one_clear_line(tmp_path, text, line):
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=line):
        tokens.load(path)


def test_the_table_names_every_method_of_every_service_and_no_other():
    services = [service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()]
    assert {service.full_name: set(service.methods_by_name) for service in services} == {
        name: set(methods) for name, methods in METHODS.items()
    }
    for service in services:
        for name, method in service.methods_by_name.items():
            known = METHODS[service.full_name][name]
            assert method.server_streaming == (known.deadline_s == 0.0), name
            assert not method.client_streaming
