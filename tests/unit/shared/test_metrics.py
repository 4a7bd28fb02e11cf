"""Metrics are recorded while somebody can read them, and are served over HTTP."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Iterator

import pytest

from shared import metrics
from shared.errors import UserError


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.fixture
def address() -> Iterator[str]:
    with metrics.serving("127.0.0.1:0") as bound:
        yield bound


def test_what_is_recorded_is_served(address: str) -> None:
    metrics.EVALUATIONS.inc("cpu-x86_64", "PASSED", "false", by=2)
    metrics.DEPENDENCY_UP.set(0, "bus")
    metrics.JOURNAL_SECONDS.observe(0.004)
    text = scraped(address)
    assert 'kernelevolve_evaluations_total{chip="cpu-x86_64",memoised="false",status="PASSED"} 2.0' in text
    assert 'kernelevolve_dependency_up{dependency="bus"} 0.0' in text
    assert 'kernelevolve_journal_append_seconds_bucket{le="0.005"} 1.0' in text
    assert "process_resident_memory_bytes" in text


def test_nothing_is_recorded_outside_of_serving() -> None:
    metrics.SEARCHES.inc("started")
    metrics.READY.set(1, "search")
    metrics.HOP_SECONDS.observe(0.1, "topic", "group")
    with metrics.serving("") as address:
        assert address == ""
        metrics.SEARCHES.inc("started")
    with metrics.serving("127.0.0.1:0") as address:
        assert 'phase="started"' not in scraped(address)


def test_the_server_is_gone_after_serving() -> None:
    with metrics.serving("127.0.0.1:0") as address:
        host, port = address.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


@pytest.mark.parametrize("listen", ["9464", "127.0.0.1", "127.0.0.1:http", ":9464", "127.0.0.1:70000"])
def test_an_address_that_is_none_is_refused_by_name(listen: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"METRICS_LISTEN={listen}")), metrics.serving(listen):
        pass


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with metrics.serving("127.0.0.1:0") as address:  # noqa: SIM117 - the second is to fail
        with pytest.raises(UserError, match="cannot listen"), metrics.serving(address):
            pass


def test_a_missing_library_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="extra `metrics`"), metrics.serving("127.0.0.1:0"):
        pass


@pytest.mark.parametrize("metric", metrics.ALL, ids=lambda metric: metric.name)
def test_names_say_what_is_counted_and_in_which_unit(metric: metrics.Metric) -> None:
    assert re.fullmatch(r"kernelevolve_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == isinstance(metric, metrics.Counter)
    assert metric.name.endswith("_seconds") == isinstance(metric, metrics.Histogram)
    assert metric.help_text.endswith(".")
    assert not {"search_id", "candidate_id", "search", "candidate"} & set(metric.labels)


def test_no_two_metrics_share_a_name() -> None:
    assert len({metric.name for metric in metrics.ALL}) == len(metrics.ALL)
