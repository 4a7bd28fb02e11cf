"""Kernels on demand over gRPC, and a knowledge service asked over gRPC."""

import asyncio
import hashlib
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

import knowledge_svc.service
import knowledge_svc.settings
from protos.synthesizer.v1 import synthesizer_service_pb2 as pb
from protos.synthesizer.v1 import synthesizer_service_pb2_grpc as rpc
from shared import proto_codec, topics
from shared.errors import Unavailable, UserError
from shared.events import Bound, ExpansionRequested, Memory, OperatorRef
from shared.knowledge import KnowledgeQuery
from shared.ports import open_ports
from shared.rpc.settings import ClientSettings
from shared.settings import PortSettings
from synthesizer_svc import remote_knowledge, service
from synthesizer_svc.generate import GENERATED
from synthesizer_svc.model import ModelError
from synthesizer_svc.no_knowledge import NoKnowledge
from synthesizer_svc.remote_knowledge import RemoteKnowledge, client_settings
from synthesizer_svc.remote_trials import clients
from synthesizer_svc.settings import ModelSettings, Settings
from tests.aio import on_loop
from tests.loopback import called, refusal, served
from tests.servers import free_port

SOFTMAX = (Path(__file__).parents[2] / "operators" / "row_softmax.py").read_text(encoding="utf-8").encode()
MEMORY = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
QUERY = KnowledgeQuery(chip="cpu-x86_64", language="cpp", operator_class="reduction", bound=Bound.MEMORY, words="tail")


def an_expansion(source: bytes = SOFTMAX, expansion_id: str = "e", **changes) -> ExpansionRequested:
    fields = {
        "search_id": "theirs",
        "expansion_id": expansion_id,
        "operator": OperatorRef(name="row_softmax", source_hash=hashlib.sha256(source).hexdigest()),
        "chip": "cpu-x86_64",
        "languages": ("cpp",),
        "seed": 1,
        "count": 2,
        "memory": Memory.PARENT,
    }
    return ExpansionRequested(**{**fields, **changes})


def a_request(expansion: ExpansionRequested | None = None, blobs: dict[str, bytes] | None = None) -> pb.GenerateRequest:
    blobs = {hashlib.sha256(SOFTMAX).hexdigest(): SOFTMAX} if blobs is None else blobs
    return pb.GenerateRequest(expansion=proto_codec.to_message(expansion or an_expansion()), blobs=blobs)


@asynccontextmanager
async def synthesizer():
    async with open_ports(MEMORY) as ports:
        built = service.build(ports, Settings(), NoKnowledge())
        async with called([built], ports) as channel:
            yield ports, rpc.SynthesizerServiceStub(channel)


@on_loop
async def test_kernels_are_written_for_blobs_given_with_the_call_once_per_expansion_id_and_never_published():
    async with synthesizer() as (ports, stub):
        answer = await stub.Generate(a_request())
        assert len(answer.candidates) == 2
        for candidate in answer.candidates:
            assert b"ke_launch" in answer.blobs[candidate.kernel.source_hash]
            assert answer.blobs[candidate.kernel.schedule_hash].startswith(b"{")
        assert [delivery async for delivery in ports.bus.history(topics.FACTS)] == []
        # Once more, also at once with another: the same answer, and blobs need not be given again.
        again, and_again = await asyncio.gather(stub.Generate(a_request(blobs={})), stub.Generate(a_request()))
        assert again == and_again == answer
        assert [key async for key, _ in ports.store.documents.scan(GENERATED)] == ["e"]
        code, line = await refusal(stub.Generate(a_request(an_expansion(seed=2))))
        assert code is grpc.StatusCode.ALREADY_EXISTS
        assert line == "expansion_id e: was used for another expansion (choose a new one)"


@on_loop
async def test_an_operator_that_cannot_be_planned_is_a_failed_expansion_and_no_error():
    source = SOFTMAX.replace(b"torch.softmax(x, dim=-1)", b"torch.fft.fft(x).real")
    async with synthesizer() as (_, stub):
        blobs = {hashlib.sha256(source).hexdigest(): source}
        answer = await stub.Generate(a_request(an_expansion(source), blobs))
    assert answer.failed.code == "unsupported_operator"
    assert not answer.candidates


class Poor:
    """A model whose budget is spent; keeps who should have paid."""

    name = "poor"

    def __init__(self) -> None:
        self.payers: list[str] = []

    async def complete(self, request):
        self.payers.append(request.search_id)
        raise ModelError("budget", "it is spent", pauses=True)


@on_loop
async def test_a_pause_is_no_answer_to_keep_and_no_other_searchs_account_pays():
    model, alone = Poor(), replace(Settings(), model=ModelSettings(share_percent=100))
    async with open_ports(MEMORY) as ports:
        built = service.build(ports, alone, NoKnowledge(), model=model)
        async with called([built], ports) as channel:
            paused = await rpc.SynthesizerServiceStub(channel).Generate(a_request())
        assert (paused.failed.code, paused.failed.pauses, paused.failed.search_id) == ("budget", True, "theirs")
        assert model.payers
        assert "theirs" not in model.payers, "their word for it is not one of this installation's searches"
        built = service.build(ports, Settings(), NoKnowledge())
        async with called([built], ports) as channel:
            answer = await rpc.SynthesizerServiceStub(channel).Generate(a_request())
    assert [candidate.search_id for candidate in answer.candidates] == ["theirs"] * 2


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (pb.GenerateRequest(), "expansion: ExpansionRequested.search_id is empty"),
        (a_request(blobs={}), "operator blob"),
        (a_request(blobs={"abc": b"no"}), "is not the SHA-256 of the bytes under it"),
        (a_request(an_expansion(count=0)), "expansion.count: is 0, expected 1 to 64"),
        (a_request(an_expansion(count=10**9)), "expansion.count: is 1000000000"),
        (a_request(an_expansion(languages=())), "expansion.languages: names no language"),
        (a_request(an_expansion(threads=0)), "expansion.threads: is 0"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_one_line(request_, line):
    @on_loop
    async def check():
        async with synthesizer() as (_, stub):
            code, message = await refusal(stub.Generate(request_))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert line in message
        assert "\n" not in message

    check()


@on_loop
async def test_a_knowledge_service_answers_over_grpc_as_it_does_in_process():
    async with open_ports(MEMORY) as ports:
        built, knowledge = knowledge_svc.service.build(ports, knowledge_svc.settings.Settings())
        async with served([built], ports) as address:
            remote = RemoteKnowledge(ClientSettings(server=address))
            try:
                assert await remote.retrieve(QUERY, 4) == await knowledge.retrieve(QUERY, 4) != ()
                assert await remote.skills(QUERY) == await knowledge.skills(QUERY)
            finally:
                await remote.close()


@on_loop
async def test_a_knowledge_service_that_is_away_is_unavailable_and_answers_once_it_is_back():
    address = f"127.0.0.1:{free_port()}"
    remote = RemoteKnowledge(ClientSettings(server=address, tries_max=1))
    try:
        with pytest.raises(Unavailable, match=address):
            await remote.retrieve(QUERY, 4)
        async with open_ports(MEMORY) as ports:
            built, _ = knowledge_svc.service.build(ports, knowledge_svc.settings.Settings())
            async with served([built], ports, address):
                while True:
                    try:
                        assert await remote.retrieve(QUERY, 4)
                        break
                    except Unavailable:
                        await asyncio.sleep(0.05)
    finally:
        await remote.close()


def test_the_url_of_the_knowledge_service_is_checked_and_the_token_is_that_of_every_client():
    client = client_settings("grpc://knowledge:50051", {"KERNELEVOLVE_TOKEN": "ke_x", "KERNELEVOLVE_CA": "/ca.pem"})
    assert (client.server, client.token, client.ca) == ("knowledge:50051", "ke_x", "/ca.pem")
    for url in (
        "http://knowledge:1",
        "knowledge:50051",
        "grpc://knowledge",
        "grpc://u:p@knowledge:1",
        "grpc://k:99999",
    ):
        with pytest.raises(UserError, match="KNOWLEDGE_URL"):
            client_settings(url, {})


@pytest.mark.parametrize("url", ["grpc://u:planted@knowledge:1", "http://u:planted@knowledge", "grpc://u:planted@k:x"])
def test_neither_a_password_in_a_url_nor_a_token_is_shown(url):
    for read in (client_settings, lambda text, _: clients(text, {}), lambda text, _: clients(f"chip={text}", {})):
        with pytest.raises(UserError) as refused:
            read(url, {})
        assert "planted" not in str(refused.value)
    assert "ke_planted" not in repr(client_settings("grpc://knowledge:1", {"KERNELEVOLVE_TOKEN": "ke_planted"}))


@on_loop
async def test_every_page_of_skills_is_asked_for(monkeypatch):
    from knowledge_svc.learn import SKILLS
    from knowledge_svc.records import to_json
    from tests.integration.knowledge.test_knowledge_api import a_skill

    monkeypatch.setattr(remote_knowledge, "PAGE", 2)
    async with open_ports(MEMORY) as ports:
        built, knowledge = knowledge_svc.service.build(ports, knowledge_svc.settings.Settings())
        for n in range(5):
            await ports.store.documents.put(SKILLS, f"s{n}", to_json(a_skill(f"s{n}")))
        async with served([built], ports) as address:
            remote = RemoteKnowledge(ClientSettings(server=address))
            try:
                found = await remote.skills(QUERY)
            finally:
                await remote.close()
        assert len(found) == 5
        assert found == await knowledge.skills(QUERY)
