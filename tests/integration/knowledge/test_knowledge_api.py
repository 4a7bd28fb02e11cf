"""Documents and skills over gRPC: several replicas, one store."""

from contextlib import AsyncExitStack, asynccontextmanager

import grpc
import pytest

from knowledge_svc import service
from knowledge_svc.learn import SKILLS, Learner
from knowledge_svc.records import to_json
from knowledge_svc.settings import Settings, from_env
from protos.knowledge.v1 import knowledge_service_pb2 as pb
from protos.knowledge.v1 import knowledge_service_pb2_grpc as rpc
from shared import envelopes, topics
from shared.clock import ManualClock
from shared.errors import Unavailable, UserError
from shared.events import Bound, SkillDistilled, SkillStatus
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.loopback import called, refusal
from tests.unit.knowledge_svc.builders import candidate, completed

MEMORY = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
ZEBRA = '+++\nid = "guidance/zebra"\ntitle = "{}"\nconcern = "guidance"\nsummary = "S."\n+++\n{}\n'


def zebra(title: str = "Zebra striping", text: str = "Stripe the zebra.") -> str:
    return ZEBRA.format(title, text)


@asynccontextmanager
async def replicas(count: int = 1, settings: Settings | None = None):
    """Stubs of ``count`` replicas over one store."""
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(open_ports(MEMORY, ManualClock(1)))
        stubs = []
        for _ in range(count):
            built, _ = service.build(ports, settings or Settings())
            stubs.append(rpc.KnowledgeServiceStub(await stack.enter_async_context(called([built], ports))))
        yield ports, stubs


def a_skill(name: str, status: SkillStatus = SkillStatus.SUPPORTED, ratio_ppm: int = 900_000) -> SkillDistilled:
    return SkillDistilled(
        skill_id=name,
        move="tile",
        operator_class="reduction",
        chip="cpu-x86_64",
        language="cpp",
        bound=Bound.MEMORY,
        status=status,
        ratio_ppm=ratio_ppm,
        low_ppm=ratio_ppm - 1000,
        high_ppm=ratio_ppm + 1000,
    )


async def titles(stub, words: str) -> list[str]:
    answer = await stub.Retrieve(pb.RetrieveRequest(query=pb.Query(words=words), limit=3))
    return [passage.title for passage in answer.passages]


@on_loop
async def test_a_document_put_on_one_replica_is_found_by_the_other_until_it_is_deleted():
    async with replicas(2) as (_, (here, there)):
        assert "Zebra striping" not in await titles(there, "zebra")
        assert not (await here.PutDocument(pb.PutDocumentRequest(document_id="guidance/zebra", text=zebra()))).replaced
        assert (await titles(there, "zebra"))[0] == "Zebra striping"
        again = pb.PutDocumentRequest(document_id="guidance/zebra", text=zebra("Quagga"))
        assert (await there.PutDocument(again)).replaced
        assert (await titles(here, "zebra"))[0] == "Quagga"
        await here.DeleteDocument(pb.DeleteDocumentRequest(document_id="guidance/zebra"))
        assert await titles(there, "quagga") == []


@on_loop
async def test_documents_are_listed_in_pages_and_read_as_they_were_written():
    async with replicas() as (_, (stub,)):
        await stub.PutDocument(pb.PutDocumentRequest(document_id="guidance/zebra", text=zebra()))
        found, token = [], ""
        while True:
            page = await stub.ListDocuments(pb.ListDocumentsRequest(page_size=7, page_token=token))
            assert len(page.documents) <= 7
            found += page.documents
            token = page.next_page_token
            if not token:
                break
        names = [document.document_id for document in found]
        assert names == sorted(set(names))
        assert [document.document_id for document in found if document.own] == ["guidance/zebra"]
        assert not any(document.text for document in found)
        for name in ("guidance/zebra", names[0]):
            document = (await stub.GetDocument(pb.GetDocumentRequest(document_id=name))).document
            assert document.text.startswith("+++\n")
        assert (await stub.GetDocument(pb.GetDocumentRequest(document_id="guidance/zebra"))).document.text == zebra()


@pytest.mark.parametrize(
    ("document_id", "text", "code", "line"),
    [
        ("guidance/zebra", "Words.", "INVALID_ARGUMENT", "document guidance/zebra: does not begin with a `+++` line"),
        ("guidance/zebra", "+++\nid = 3\n+++\nW.\n", "INVALID_ARGUMENT", "front matter `id` must be a string"),
        ("guidance/horse", zebra(), "INVALID_ARGUMENT", "front matter has the id `guidance/zebra`"),
        ("guidance/zebra", zebra(text="x" * (1 << 20)), "INVALID_ARGUMENT", "is larger than 1 MiB"),
        (
            "guidance/roofline",
            zebra().replace("guidance/zebra", "guidance/roofline"),
            "ALREADY_EXISTS",
            "belongs to the corpus that the service came with, which is read-only",
        ),
    ],
)
def test_a_document_that_cannot_be_taken_is_refused_in_one_line(document_id, text, code, line):
    @on_loop
    async def check():
        async with replicas() as (_, (stub,)):
            got, message = await refusal(stub.PutDocument(pb.PutDocumentRequest(document_id=document_id, text=text)))
        assert got is grpc.StatusCode[code]
        assert line in message
        assert "\n" not in message

    check()


@on_loop
async def test_documents_that_are_not_there_or_not_ones_own_cannot_be_deleted():
    async with replicas() as (_, (stub,)):
        code, _ = await refusal(stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="guidance/unicorn")))
        assert code is grpc.StatusCode.NOT_FOUND
        code, line = await refusal(stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="guidance/roofline")))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "read-only" in line
        code, _ = await refusal(stub.GetDocument(pb.GetDocumentRequest(document_id="guidance/unicorn")))
        assert code is grpc.StatusCode.NOT_FOUND


@on_loop
async def test_skills_are_listed_in_pages_strongest_first_and_retracted_ones_only_when_asked_for():
    async with replicas() as (ports, (stub,)):
        known = [a_skill(f"s{n}", ratio_ppm=900_000 + n) for n in range(5)]
        known += [a_skill("gone", SkillStatus.RETRACTED), a_skill("maybe", SkillStatus.HYPOTHESIS)]
        for skill in known:
            await ports.store.documents.put(SKILLS, skill.skill_id, to_json(skill))
        found, token = [], ""
        while True:
            page = await stub.ListSkills(pb.ListSkillsRequest(page_size=2, page_token=token, include_retracted=True))
            found += [skill.skill_id for skill in page.skills]
            token = page.next_page_token
            if not token:
                break
        assert found == ["s0", "s1", "s2", "s3", "s4", "maybe", "gone"]
        rest = await stub.ListSkills(pb.ListSkillsRequest(query=pb.Query(operator_class="reduction")))
        assert [skill.skill_id for skill in rest.skills] == found[:-1]
        assert not (await stub.ListSkills(pb.ListSkillsRequest(query=pb.Query(operator_class="scan")))).skills


@pytest.mark.parametrize(
    "request_",
    [
        pb.ListSkillsRequest(page_token="not a token"),
        pb.ListSkillsRequest(page_token="eA=="),
        pb.ListSkillsRequest(page_size=-1),
    ],
)
def test_pages_that_never_were_are_refused(request_):
    @on_loop
    async def check():
        async with replicas() as (_, (stub,)):
            code, _ = await refusal(stub.ListSkills(request_))
        assert code is grpc.StatusCode.INVALID_ARGUMENT

    check()


async def heard(ports: Ports, knowledge: service.KnowledgeService, facts) -> None:
    for n, fact in enumerate(facts):
        await knowledge.on_fact(envelopes.envelope(fact, cause_id="c", source="/test", clock=ports.clock, n=n))


def a_search(name: str, children: int = 3):
    facts = [candidate(f"{name}-a", search=name), completed(f"{name}-a", 1.0, search=name)]
    for n in range(children):
        facts += [candidate(f"{name}-{n}", (f"{name}-a",), search=name), completed(f"{name}-{n}", 1.4, search=name)]
    return facts


@on_loop
async def test_facts_heard_again_by_a_restarted_replica_change_nothing():
    async with open_ports(MEMORY, ManualClock(1)) as ports:
        _, first = service.build(ports, Settings())
        await heard(ports, first, a_search("s1"))
        before = await Learner(ports.store.documents, ports.store.documents).skills()
        _, second = service.build(ports, Settings())
        await heard(ports, second, a_search("s1"))
        assert before == await Learner(ports.store.documents, ports.store.documents).skills()


@on_loop
async def test_what_two_replicas_learn_at_once_about_one_skill_is_all_in_it():
    """The other replica's observation comes between this one's look at the evidence and its remembering."""
    async with open_ports(MEMORY, ManualClock(1)) as ports:
        _, slow = service.build(ports, Settings())
        _, quick = service.build(ports, Settings())
        await heard(ports, slow, a_search("s1", 1)[:-1])
        await heard(ports, quick, a_search("s2", 1)[:-1])
        publish, meanwhile = ports.bus.publish, [a_search("s2", 1)[-1]]

        async def interrupted(topic, record):
            await publish(topic, record)
            while meanwhile:
                await heard(ports, quick, [meanwhile.pop()])

        ports.bus.publish = interrupted  # type: ignore[method-assign]
        await heard(ports, slow, a_search("s1", 1)[-1:])
        (skill,) = await Learner(ports.store.documents, ports.store.documents).skills()
        assert set(skill.evidence_for) == {"s1-0", "s2-0"}


@on_loop
async def test_frozen_skills_stay_as_they_are_and_their_facts_are_left_for_later():
    async with open_ports(MEMORY) as ports:
        built, _ = service.build(ports, Settings(learning=False))
        assert built.subscriptions == ()
        built, _ = service.build(ports, Settings())
        assert [about.topic for about in built.subscriptions] == [topics.FACTS, topics.SKILLS]


@on_loop
async def test_a_store_that_is_gone_is_said_to_be_unavailable():
    async with replicas() as (ports, (stub,)):

        async def gone(*_args):
            raise Unavailable("the store is gone")

        ports.store.documents.get = gone
        call = stub.GetDocument(pb.GetDocumentRequest(document_id="guidance/roofline"), timeout=0.2)
        code, _ = await refusal(call)
        assert code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)  # it is repeated meanwhile


def test_a_store_on_a_server_keeps_skills_and_documents_and_no_folder_of_this_user_is_read():
    cluster = from_env({"STORE_URL": "mongodb://db/ke"})
    assert cluster.in_own_store
    assert cluster.user_folder is None
    alone = from_env({})
    assert not alone.in_own_store
    assert alone.skills_url.startswith("sqlite:")
    assert alone.user_folder is not None
    assert not from_env({"STORE_URL": "mongodb://db/ke", "SKILLS_URL": "mongodb://other/skills"}).in_own_store
    assert not from_env({"KNOWLEDGE_LEARNING": "false"}).learning
    with pytest.raises(UserError, match="KNOWLEDGE_LEARNING"):
        from_env({"KNOWLEDGE_LEARNING": "perhaps"})
