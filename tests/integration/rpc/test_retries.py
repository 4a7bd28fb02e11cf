"""A server that is away for a moment: what the channel repeats by itself, and what it does not."""

from __future__ import annotations

import asyncio

import pytest

from protos.search.v1 import search_service_pb2 as pb
from protos.synthesizer.v1 import synthesizer_service_pb2, synthesizer_service_pb2_grpc
from shared.errors import NotFound, Unavailable, UserError
from shared.rpc.client import connect
from shared.rpc.errors import as_ours
from shared.rpc.settings import ClientSettings
from tests.aio import on_loop
from tests.integration.rpc.toys import Toy, a_get, stub_of, toy_server
from tests.servers import free_port


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


@on_loop
async def test_a_repeatable_call_outlasts_a_restart():
    address = free_address()
    async with stub_of(address) as stub:
        call = asyncio.ensure_future(stub.Get(a_get()))
        await asyncio.wait({call}, timeout=0.3)  # it has met nobody
        assert not call.done()
        async with toy_server(Toy(), listen=address):
            assert (await call).search.search_id == "s"


@on_loop
async def test_an_unavailable_answer_is_repeated_five_times_in_all():
    def get(search_id):
        raise Unavailable("the store does not answer")

    toy = Toy(get=get)
    async with toy_server(toy) as address, stub_of(address, retry_pause_s=0.01) as stub:
        with pytest.raises(Unavailable, match="the store does not answer"), as_ours(address):
            await stub.Get(a_get())
    assert toy.calls == 5


@on_loop
async def test_a_call_that_costs_tokens_is_not_repeated():
    address = free_address()
    async with connect(ClientSettings(server=address)) as channel:
        stub = synthesizer_service_pb2_grpc.SynthesizerServiceStub(channel)
        async with asyncio.timeout(5):
            with pytest.raises(Unavailable), as_ours(address):
                await stub.Generate(synthesizer_service_pb2.GenerateRequest())


@on_loop
async def test_a_mistake_is_not_repeated():
    def get(search_id):
        raise NotFound("is not known", where=f"search {search_id}", hint="list them")

    toy = Toy(get=get)
    async with toy_server(toy) as address, stub_of(address) as stub:
        with pytest.raises(NotFound) as refused, as_ours(address):
            await stub.Get(a_get())
    assert (refused.value.what, refused.value.where, refused.value.hint) == ("is not known", "search s", "list them")
    assert toy.calls == 1


@on_loop
async def test_a_call_that_the_server_does_not_offer_says_so():
    async with toy_server(Toy()) as address, stub_of(address) as stub:
        with pytest.raises(UserError, match="does not offer this call"), as_ours(address):
            await stub.ListPools(pb.ListPoolsRequest())
