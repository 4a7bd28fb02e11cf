"""A process tells what its environment asks for: JSON lines, metrics over HTTP, spans to a collector."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

from tests.fakes.collector import Collector, listening

PROGRAM = """
import asyncio, logging, sys
from shared import topics, wire
from shared.process import main
from shared.service import Service, Subscribe
from tests.unit.shared.builders import an_envelope

log = logging.getLogger("program")

def build(ports):
    async def handle(envelope):
        log.info("handled with s3cr3t-token")

    async def publish(stop):
        await ports.bus.publish(topics.FACTS, wire.encode(an_envelope()))
        await stop.wait()

    facts = Subscribe(topic=topics.FACTS, group="g", handler=handle)
    return [Service(name="one", subscriptions=(facts,)), Service(name="two", background=(publish,))]

sys.exit(main(build))
"""


def environment(**changes: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "LOG_"))}
    return {**plain, "STORE_URL": "memory:", "METRICS_LISTEN": "127.0.0.1:0", "LOG_FORMAT": "json", **changes}


def test_a_process_logs_counts_and_traces_as_its_environment_says() -> None:
    collector = Collector()
    with listening(collector) as endpoint:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=environment(OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, KERNELEVOLVE_TOKEN="s3cr3t-token"),
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = []
        for text in process.stderr:
            lines.append(json.loads(text))
            if lines[-1]["logger"] == "program":
                break
        (address,) = [line["message"].split()[-1] for line in lines if line["message"].startswith("metrics at ")]
        with urllib.request.urlopen(address, timeout=10) as answer:
            scraped = answer.read().decode()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0

    handled = lines[-1]
    assert handled["message"] == "handled with …"
    assert handled["service"] == "one+two"
    assert handled["event"]
    assert handled["search_id"]
    assert handled["event_id"]

    assert "kernelevolve_hop_delay_seconds_count" in scraped
    assert 'kernelevolve_dependency_up{dependency="bus"} 1.0' in scraped

    (exported,) = collector.got.get(timeout=10).resource_spans
    resource = {each.key: each.value.string_value for each in exported.resource.attributes}
    assert resource["service.name"] == "kernelevolve-one+two"
    span = exported.scope_spans[0].spans[0]
    assert span.name == handled["event"]
    assert handled["trace_id"] == span.trace_id.hex()


def test_a_setting_that_cannot_be_is_one_line_and_exit_code_two() -> None:
    for wrong in ({"LOG_FORMAT": "xml"}, {"METRICS_LISTEN": "nowhere"}, {"DEPENDENCY_PING_EVERY_S": "-1"}):
        (name,) = wrong
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(
            command, env=environment(**wrong), capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        (line,) = [line for line in done.stderr.splitlines() if not line.startswith("{")]
        assert name.partition("_")[0] in line
