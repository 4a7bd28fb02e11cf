"""The same garbage through a real broker: set aside, listed and redriven unchanged, strangers' headers and all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from deploy import together
from protos.operations.v1 import operations_service_pb2 as pb
from protos.operations.v1 import operations_service_pb2_grpc as rpc
from shared import topics
from shared.adapters import open_bus, open_cache, open_store
from shared.clock import SystemClock
from shared.events import EvaluationCompleted, ExpansionFailed
from shared.ports import Ports
from tests import servers
from tests.aio import on_loop
from tests.contract.test_kafka import SHARED
from tests.integration.operations.test_dead_letters import BYTES, CONSUMED, ENVIRONMENT, answers, garbage, letters
from tests.loopback import called


@asynccontextmanager
async def ports_on(address: str) -> AsyncIterator[Ports]:
    clock = SystemClock()
    async with (
        open_store("memory:") as store,
        open_cache("memory:", clock) as cache,
        open_bus(f"kafka://{address}", SHARED) as bus,
    ):
        yield Ports(bus=bus, store=store, cache=cache, clock=clock)


async def throw_garbage(address: str) -> None:
    """From a producer that knows nothing of this project: keys that are no text, and no key at all."""
    headers = list(garbage().headers.items())
    async with AIOKafkaProducer(bootstrap_servers=address) as stranger:
        for topic in CONSUMED:
            for key in (b"key", b"\xff\x00", None):
                await stranger.send_and_wait(topic, BYTES, key=key, headers=headers)


async def garbage_on(address: str, topic: str, count: int) -> list[tuple[bytes, tuple[tuple[str, bytes], ...]]]:
    """Keys and headers of the garbage on ``topic``, as a stranger reads it, once there are ``count``."""
    async with AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        found = []
        while len(found) < count:
            batch = await consumer.getmany(timeout_ms=200)
            found += [(m.key or b"", m.headers) for messages in batch.values() for m in messages if m.value == BYTES]
        return found


def test_garbage_from_strangers_on_a_real_broker_is_set_aside_and_redriven_unchanged():
    @on_loop
    async def check():
        async with ports_on(broker.address) as ports:
            await ports.bus.ensure_topics(CONSUMED)
            await throw_garbage(broker.address)
            async with called(together.services(ports, ENVIRONMENT), ports) as channel:
                await asyncio.gather(*(letters(ports.bus, t, 3 * groups) for t, groups in CONSUMED.items()))
                await answers(ports, ExpansionFailed, EvaluationCompleted)
                stub = rpc.OperationsServiceStub(channel)
                asked = pb.ListDeadLettersRequest(source_topic=topics.SYNTHESIS_REQUESTS)
                found = (await stub.ListDeadLetters(asked)).letters
                assert len(found) == 3
                before = await garbage_on(broker.address, topics.SYNTHESIS_REQUESTS, 3)
                for letter in found:
                    await stub.RedriveDeadLetter(pb.RedriveDeadLetterRequest(letter_id=letter.letter_id))
                after = await garbage_on(broker.address, topics.SYNTHESIS_REQUESTS, 6)
                assert sorted(after) == sorted(before * 2)

    with servers.fresh_broker() as broker:
        check()
