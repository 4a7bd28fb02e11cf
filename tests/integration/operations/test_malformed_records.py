"""Whatever bytes are on a topic, and whatever well-formed events belong elsewhere: the services go on."""

import asyncio
from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploy import together
from shared import dead_letters, topics, wire
from shared.bus import Record
from shared.errors import Poison
from shared.events import EvaluationCompleted, ExpansionFailed
from shared.ports import open_ports
from shared.runtime import running
from tests import strategies
from tests.integration.operations.test_dead_letters import CONSUMED, ENVIRONMENT, MEMORY, answers

MOST = 20
"""No more than the well-formed records that a consumer may refuse in a row."""
HEADERS = st.sampled_from(
    ["content-type", "ce_type", "ce_id", "ce_time", "ce_attempt", "ce_partitionkey", "traceparent"]
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """A record of this system with one thing wrong, or several, or none."""
    record = wire.encode(draw(strategies.envelopes()))
    value, headers = record.value, dict(record.headers)
    match draw(st.sampled_from(["bytes", "cut", "flip", "drop", "header", "none"])):
        case "bytes":
            value = draw(st.binary(max_size=64))
        case "cut":
            value = value[: draw(st.integers(0, len(value)))]
        case "flip":
            at = draw(st.integers(0, max(0, len(value) - 1)))
            value = value[:at] + bytes([draw(st.integers(0, 255))]) + value[at + 1 :]
        case "drop":
            headers.pop(draw(HEADERS), None)
        case "header":
            headers[draw(HEADERS)] = draw(st.binary(max_size=16))
        case _:
            pass
    return replace(record, value=value, headers=headers)


def malformed(record: Record) -> bool:
    try:
        wire.decode(record)
    except Poison:
        return True
    return False


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(sorted(CONSUMED)), records()), min_size=8, max_size=MOST))
def test_malformed_records_are_set_aside_unchanged_and_no_record_at_all_stops_a_service(sent):
    async def go() -> None:
        async with open_ports(MEMORY) as ports, running(together.services(ports, ENVIRONMENT), ports) as handle:
            for topic, record in sent:
                await ports.bus.publish(topic, record)
            asked = asyncio.create_task(answers(ports, ExpansionFailed, EvaluationCompleted))
            await asyncio.wait({asked, handle.failed}, return_when=asyncio.FIRST_COMPLETED)
            if handle.failed.done():
                await handle.failed
            await asked
            for topic, groups in CONSUMED.items():
                due = Counter(_identity(r) for t, r in sent if t == topic and malformed(r) for _ in range(groups))
                while True:
                    buried = Counter(
                        [
                            _identity(dead_letters.read(delivery).original)
                            async for delivery in ports.bus.history(topics.dead_letters(topic))
                        ]
                    )
                    if due <= buried:
                        break
                    await asyncio.sleep(0.005)

    asyncio.run(go())


def _identity(record: Record) -> tuple[str, bytes, tuple[tuple[str, bytes], ...]]:
    return record.key, record.value, tuple(sorted(record.headers.items()))
