"""Garbage on every topic: it is set aside byte for byte, stops nothing, and can be looked at and sent again."""

import asyncio
import hashlib
import json
from collections import Counter
from contextlib import asynccontextmanager, suppress

import grpc
import pytest
from click.testing import CliRunner

from cli.commands import dlq
from deploy import together
from protos.operations.v1 import operations_service_pb2 as pb
from protos.operations.v1 import operations_service_pb2_grpc as rpc
from protos.search.v1 import search_service_pb2 as search_pb
from protos.search.v1 import search_service_pb2_grpc as search_rpc
from search_svc import operations_api
from shared import dead_letters, envelopes, topics, wire
from shared.bus import Delivery, Record
from shared.clock import ManualClock
from shared.errors import Poison
from shared.events import (
    CapacityAnnounced,
    EvaluationCompleted,
    EvaluationRequested,
    ExpansionFailed,
    ExpansionRequested,
    KernelRef,
    Memory,
    OperatorRef,
    Purpose,
)
from shared.events.capacity import WorkerState
from shared.ports import open_ports
from shared.runtime import running
from shared.service import Service
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.loopback import called, refusal, served

MEMORY = PortSettings(bus_url="memory:", store_url="memory:", cache_url="memory:")
CHIP = "simulated"
ENVIRONMENT = {
    "EVALUATOR_CHIP": CHIP,
    "SIMULATED_MEDIAN_S": "0.001",
    "SIMULATED_LONGEST_S": "0.01",
    "SKILLS_URL": "run:",
}
CONSUMED = {
    topics.FACTS: 2,
    topics.SYNTHESIS_REQUESTS: 1,
    topics.SKILLS: 1,
    topics.CAPACITY: 1,
    topics.evaluation_requests(CHIP): 1,
}
"""Every topic -> groups that read it: each sets a record aside by itself."""
BYTES = bytes(range(256))


def garbage(n: int = 0) -> Record:
    """Looks like a record of this system as far as its headers go."""
    headers = {
        "content-type": b"application/protobuf",
        "ce_specversion": b"1.0",
        "ce_type": b"protos.events.v1.SearchStarted",
        "unknown": BYTES,
    }
    return Record(key=f"key {n}", value=BYTES, headers=headers)


async def letters(bus, topic: str, count: int) -> list[dead_letters.DeadLetter]:
    """All letters of ``topic``, once there are ``count``."""
    while True:
        found = [dead_letters.read(d) async for d in bus.history(topics.dead_letters(topic))]
        if len(found) >= count:
            return found
        await asyncio.sleep(0.005)


async def answers(ports, *kinds: type) -> None:
    """Ask every service something and wait for answers of ``kinds``."""
    blob = await ports.store.blobs.put(b"nothing")
    kernel = KernelRef(kernel_id="k", language="cpp", source_hash=blob)
    operator = OperatorRef(name="toy", source_hash=await ports.store.blobs.put(TOY.encode()))
    asked = (
        ExpansionRequested(
            search_id="s", expansion_id="e", operator=operator, chip="abacus", languages=("cpp",), seed=1, count=1,
            memory=Memory.CLEAN,
        ),
        EvaluationRequested(
            search_id="s", evaluation_id="v", candidate_id="c", kernel=kernel, operator=operator, chip=CHIP,
            purpose=Purpose.SEARCH,
        ),
    )  # fmt: skip
    for event in asked:
        wrapped = envelopes.envelope(event, cause_id="cause", source="/test", clock=ports.clock)
        await ports.bus.publish(envelopes.topic_of(event), wire.encode(wrapped))
    waiting = set(kinds)
    while waiting:
        async for delivery in ports.bus.history(topics.FACTS):
            with suppress(Poison):
                waiting.discard(type(wire.decode(delivery.record).event))
        await asyncio.sleep(0.005)


TOY = "class Model:\n    pass\ndef get_inputs():\n    pass\ndef get_init_inputs():\n    pass\n"


@on_loop
async def test_garbage_on_every_topic_is_set_aside_byte_for_byte_and_stops_nothing():
    async with open_ports(MEMORY) as ports, running(together.services(ports, ENVIRONMENT), ports) as handle:
        for topic in CONSUMED:
            for n in range(30):  # more than the poison that well-formed records may be
                await ports.bus.publish(topic, garbage(n))
        for topic, groups in CONSUMED.items():
            found = await letters(ports.bus, topic, 30 * groups)
            assert len(found) == 30 * groups
            once = Counter((letter.group, letter.original.key) for letter in found)
            assert set(once.values()) == {1}
            assert len({group for group, _ in once}) == groups
            assert {key for _, key in once} == {f"key {n}" for n in range(30)}
            for letter in found:
                assert (letter.original.value, letter.original.headers) == (BYTES, garbage().headers)
                assert letter.topic == topic
                assert letter.error
                assert letter.first_failed_ns
        await answers(ports, ExpansionFailed, EvaluationCompleted)
        assert handle.ready
        assert not handle.failed.done()


@asynccontextmanager
async def operations(ports):
    """A stub of the operations service over ``ports``."""
    servicer = operations_api.OperationsServicer(ports).servicer()
    async with called([Service(name="search", servicers=(servicer,))], ports) as channel:
        yield rpc.OperationsServiceStub(channel)


async def bury(ports, topic: str, n: int, at_ns: int, record: Record | None = None) -> None:
    delivery = Delivery(topic=topic, partition=3, offset=n, record=record or garbage(n))
    letter = dead_letters.record(delivery, f"reason {n}", group="readers", attempts=n + 1, at_ns=at_ns)
    await ports.bus.publish(topics.dead_letters(topic), letter)


@on_loop
async def test_letters_are_listed_oldest_first_in_pages_and_by_topic():
    async with open_ports(MEMORY) as ports, operations(ports) as stub:
        for n in range(6):
            topic = topics.FACTS if n % 2 else topics.SYNTHESIS_REQUESTS
            await bury(ports, topic, n, at_ns=10**9 * (10 - n))
        found, token = [], ""
        while True:
            page = await stub.ListDeadLetters(pb.ListDeadLettersRequest(page_size=2, page_token=token))
            found += page.letters
            token = page.next_page_token
            if not token:
                break
        assert [letter.source_offset for letter in found] == [5, 4, 3, 2, 1, 0]
        oldest = found[0]
        assert (oldest.source_topic, oldest.source_partition, oldest.attempts) == (topics.FACTS, 3, 6)
        assert (oldest.error, oldest.key, oldest.value_bytes) == ("reason 5", "key 5", 256)
        assert oldest.first_failed_at.seconds == 5
        some = await stub.ListDeadLetters(pb.ListDeadLettersRequest(source_topic=topics.FACTS))
        assert [letter.source_offset for letter in some.letters] == [5, 3, 1]


@on_loop
async def test_a_redriven_letter_is_published_as_it_was_and_marked():
    async with open_ports(MEMORY) as ports, operations(ports) as stub:
        for n in range(2):
            await bury(ports, topics.CAPACITY, n, at_ns=n + 1)
        (first, second) = (await stub.ListDeadLetters(pb.ListDeadLettersRequest())).letters
        shown = await stub.GetDeadLetter(pb.GetDeadLetterRequest(letter_id=first.letter_id))
        assert (shown.value, dict(shown.headers), shown.letter) == (BYTES, garbage().headers, first)
        await stub.RedriveDeadLetter(pb.RedriveDeadLetterRequest(letter_id=first.letter_id))
        (again,) = [delivery.record async for delivery in ports.bus.history(topics.CAPACITY)]
        assert again == garbage(0)
        assert list((await stub.ListDeadLetters(pb.ListDeadLettersRequest())).letters) == [second]
        every = (await stub.ListDeadLetters(pb.ListDeadLettersRequest(include_redriven=True))).letters
        assert [letter.redriven for letter in every] == [True, False]


@on_loop
async def test_a_record_that_can_be_handled_by_now_is_handled_when_it_is_redriven():
    announced = CapacityAnnounced(worker_id="w", chip=CHIP, slots=2, state=WorkerState.READY, at_ns=1)
    async with open_ports(MEMORY, ManualClock(1)) as ports:
        services = together.services(ports, ENVIRONMENT)
        async with called(services, ports) as channel:
            stub = rpc.OperationsServiceStub(channel)
            wrapped = envelopes.envelope(announced, cause_id="w", source="/test", clock=ports.clock)
            await bury(ports, topics.CAPACITY, 0, at_ns=1, record=wire.encode(wrapped))
            (letter,) = (await stub.ListDeadLetters(pb.ListDeadLettersRequest())).letters
            await stub.RedriveDeadLetter(pb.RedriveDeadLetterRequest(letter_id=letter.letter_id))
            searches = search_rpc.SearchServiceStub(channel)
            while sum(pool.workers for pool in (await searches.ListPools(search_pb.ListPoolsRequest())).pools) < 2:
                await asyncio.sleep(0.005)


@on_loop
async def test_a_letter_of_a_broker_that_began_anew_does_not_count_as_redriven():
    async with open_ports(MEMORY) as before, operations(before) as stub:
        await bury(before, topics.CAPACITY, 0, at_ns=1)
        (letter,) = (await stub.ListDeadLetters(pb.ListDeadLettersRequest())).letters
        await stub.RedriveDeadLetter(pb.RedriveDeadLetterRequest(letter_id=letter.letter_id))
        async with open_ports(MEMORY) as after:
            object.__setattr__(after, "store", before.store)
            async with operations(after) as stub_after:
                await bury(after, topics.CAPACITY, 0, at_ns=2)
                (fresh,) = (await stub_after.ListDeadLetters(pb.ListDeadLettersRequest())).letters
    assert fresh.letter_id == letter.letter_id
    assert not fresh.redriven


@on_loop
async def test_what_somebody_else_wrote_on_a_dead_letter_topic_is_listed_too():
    async with open_ports(MEMORY) as ports, operations(ports) as stub:
        strange = {"dlq_partition": b"many", "dlq_first_failed_at": b"\xff", "dlq_topic": b"elsewhere"}
        await ports.bus.publish(topics.dead_letters(topics.FACTS), Record(key="", value=b"", headers=strange))
        (letter,) = (await stub.ListDeadLetters(pb.ListDeadLettersRequest())).letters
        assert (letter.source_topic, letter.source_partition, letter.value_bytes) == (topics.FACTS, 0, 0)


@pytest.mark.parametrize(
    "letter_id",
    ["", "search.facts.v1.dlq/0/17", "nowhere/0/1", "search.facts.v1/0/0", "a/b/c/d", "search.facts.v1.dlq"],
)
def test_a_letter_that_does_not_exist_is_not_found(letter_id):
    @on_loop
    async def check():
        async with open_ports(MEMORY) as ports, operations(ports) as stub:
            code, line = await refusal(stub.RedriveDeadLetter(pb.RedriveDeadLetterRequest(letter_id=letter_id)))
            assert code is grpc.StatusCode.NOT_FOUND
            assert f"no dead letter `{letter_id}`" in line
            code, _ = await refusal(stub.ListDeadLetters(pb.ListDeadLettersRequest(source_topic="nowhere")))
            assert code is grpc.StatusCode.NOT_FOUND

    check()


@on_loop
async def test_the_command_line_lists_shows_and_redrives(tmp_path):
    async with open_ports(MEMORY) as ports:
        servicer = operations_api.OperationsServicer(ports).servicer()
        async with served([Service(name="search", servicers=(servicer,))], ports) as address:
            await bury(ports, topics.SYNTHESIS_REQUESTS, 7, at_ns=10**18)

            async def told(*words: str):
                command = [*words, "--server", address]
                return await asyncio.to_thread(CliRunner().invoke, dlq.command, command)

            listed = await told("list", "--json")
            assert listed.exit_code == 0, listed.output
            letter = json.loads(listed.stdout)
            assert (letter["group"], letter["error"], letter["offset"], letter["attempts"]) == (
                "readers",
                "reason 7",
                7,
                8,
            )
            assert "reason 7" in (await told("list")).stdout
            shown = await told("show", letter["letter"], "--out", str(tmp_path / "value"), "--json")
            assert hashlib.sha256((tmp_path / "value").read_bytes()).digest() == hashlib.sha256(BYTES).digest()
            assert bytes.fromhex(json.loads(shown.stdout)["value_hex"]) == BYTES
            assert "reason 7" in (await told("show", letter["letter"])).stdout
            assert (await told("redrive", letter["letter"])).stdout == f"redriven {letter['letter']}\n"
            assert (await told("list")).stdout == "no dead letters\n"
            assert json.loads((await told("list", "--all", "--json")).stdout)["redriven"] is True
            assert "no dead letter `x`" in str((await told("redrive", "x")).exception)
