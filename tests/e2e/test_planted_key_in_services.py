"""A planted key goes through services that log everything, count and trace, and none of it tells the key."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.request
from queue import Empty

import pytest
from command_line import OPERATOR, ROOT, command, environment, kernelevolve, last_object
from planted import ENDPOINTS, SETTINGS, SPELLINGS, VARIABLE, holding

from tests.fakes.collector import Collector, listening
from tests.fakes.echoing_endpoint import echoing_endpoint

pytestmark = [pytest.mark.serial, pytest.mark.timeout(300)]
SERVED = {
    "LOG_FORMAT": "json",
    "GRPC_LISTEN": "127.0.0.1:0",
    "METRICS_LISTEN": "127.0.0.1:0",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "SIMULATED_MEDIAN_S": "0.01",
    "SIMULATED_LONGEST_S": "0.05",
    "MODEL_REPAIR_TURNS": "0",
}
ADDRESSES = {"metrics": "metrics at ", "grpc": "gRPC listens on "}


def addresses(log, process):
    """Where ``process`` says in ``log`` that it is."""
    found = {}
    while len(found) < len(ADDRESSES):
        assert process.poll() is None, log.read_text()
        for name, words in ADDRESSES.items():
            _, told, rest = log.read_text().partition(words)
            if told and " " in rest.replace('"', " "):
                found[name] = rest.replace('"', " ").split()[0]
        time.sleep(0.02)
    return found


def test_no_log_no_metric_no_span_no_record_and_no_result_of_a_server_tells_the_key(tmp_path):
    log, collector = tmp_path / "server.log", Collector()
    with echoing_endpoint(VARIABLE) as echo, listening(collector) as otlp, log.open("w") as stderr:
        models = tmp_path / "models.toml"
        models.write_text(ENDPOINTS.format(url=echo.url, variable=VARIABLE))
        told = {"MODEL_ENDPOINTS": str(models), "OTEL_EXPORTER_OTLP_ENDPOINT": otlp}
        process = subprocess.Popen(
            command("serve", "--chip", "simulated"),
            cwd=tmp_path,
            env=environment(tmp_path) | {"PYTHONPATH": str(ROOT)} | SETTINGS | SERVED | told,
            stderr=stderr,
        )
        try:
            at = addresses(log, process)
            client = ("--server", at["grpc"])
            asked = ("--chip", "simulated", "--evaluations", 2, "--watch", "--out", tmp_path / "out", "--json")
            done = kernelevolve("submit", OPERATOR, *asked, *client, home=tmp_path)
            result = last_object(done)
            got = kernelevolve("get", result["search_id"], "--json", *client, home=tmp_path)
            with urllib.request.urlopen(at["metrics"], timeout=10) as answer:
                scraped = answer.read()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    spans = b""
    while True:
        try:
            spans += collector.got.get_nowait().SerializeToString()
        except Empty:
            break
    for name, written in {"said": done.stdout + done.stderr, "got": got.stdout + got.stderr}.items():
        (tmp_path / name).write_text(written)
    (tmp_path / "metrics").write_bytes(scraped)
    (tmp_path / "spans").write_bytes(spans)

    assert result["evaluations"] == 2
    assert echo.echoed > 5
    assert echo.without == 0
    assert b"CandidateProduced" in spans
    assert b"echo" in scraped  # the endpoint, by name
    assert "httpx" in log.read_text()  # drivers, too
    assert holding(tmp_path / "out", "for …")
    assert holding(tmp_path, *SPELLINGS) == set()
