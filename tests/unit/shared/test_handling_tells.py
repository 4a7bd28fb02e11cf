"""What becomes of records is counted, and what is logged about one names it."""

from __future__ import annotations

import asyncio
import json
import logging
import urllib.request
from dataclasses import replace

from shared import logs, metrics, topics, wire
from shared.clock import SECOND_NS
from shared.consume import ConsumeLimits
from shared.errors import Poison, Retryable
from shared.events import Envelope
from shared.ports import open_ports
from shared.runtime import running
from shared.service import Service, Subscribe
from shared.settings import PortSettings
from tests.aio import on_loop
from tests.unit.shared.builders import an_envelope

LIMITS = ConsumeLimits(poll_wait_s=0.001, backoff_s=0.001)


async def scraped(address: str) -> str:
    def get() -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(get)


@on_loop
async def test_records_are_counted_by_how_they_ended_and_log_lines_name_them() -> None:
    lines: list[dict[str, str]] = []
    done = asyncio.Event()
    failures = iter([True, True, False])

    async def handle(envelope: Envelope) -> None:
        if envelope.id == "refused":
            raise Poison("not for us")
        record = logging.makeLogRecord({"msg": "in the handler", "name": "handler"})
        lines.append(json.loads(logs.JsonLines(logs.Redaction({})).format(record)))
        if next(failures):
            raise Retryable("busy")
        done.set()

    envelope = an_envelope()
    async with open_ports(PortSettings(store_url="memory:")) as ports:
        with metrics.serving("127.0.0.1:0") as address:
            sent = replace(envelope, time_ns=ports.clock.now_ns() - 3 * SECOND_NS)
            garbage = replace(wire.encode(sent), value=b"\xff")
            for record in (garbage, wire.encode(replace(sent, id="refused")), wire.encode(sent)):
                await ports.bus.publish(topics.FACTS, record)
            facts = Subscribe(topic=topics.FACTS, group="g", handler=handle)
            async with running([Service(name="s", subscriptions=(facts,))], ports, LIMITS):
                await done.wait()
            text = await scraped(address)

    for outcome, count in (("handled", 1), ("poison", 2), ("retried", 2)):
        assert f'kernelevolve_records_total{{group="g",outcome="{outcome}",topic="{topics.FACTS}"}} {count}.0' in text
    hop = f'kernelevolve_hop_delay_seconds_bucket{{group="g",le="2.5",topic="{topics.FACTS}"}} 2.0'
    assert hop in text, "since publication, whatever time the record carries"
    assert f'kernelevolve_consumer_lag_records{{chip="",group="g",topic="{topics.FACTS}"}}' in text
    assert len(lines) == 3
    assert {line["event_id"] for line in lines} == {envelope.id}
    assert {line["search_id"] for line in lines} == {envelope.event.search_id}
    assert {line["event"] for line in lines} == {type(envelope.event).__name__}


def test_the_queue_of_a_chip_is_known_by_its_topic() -> None:
    assert topics.chip_of(topics.evaluation_requests("nvidia-sm_90")) == "nvidia-sm_90"
    assert topics.chip_of(topics.dead_letters(topics.evaluation_requests("nvidia-sm_90"))) == ""
    assert topics.chip_of(topics.FACTS) == ""
