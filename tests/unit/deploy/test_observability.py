"""Dashboards and alerts ask for metrics and labels that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.local import scrape
from deploy.local.state import Member, State
from shared import metrics

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "observability"
DASHBOARD = json.loads((FOLDER / "grafana/dashboards/kernelevolve.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
PROMETHEUS = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text(encoding="utf-8"))

SERIES = {series: metric for metric in metrics.ALL for series in metric.series}
FROM_OUTSIDE = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total"}
"""Prometheus' own, and those that its library has for every process."""
OF_THE_SCRAPE = {"component", "instance", "job"}
"""Labels that every series has."""
FUNCTIONS = {"sum", "min", "max", "rate", "increase", "histogram_quantile", "label_values"}
WORDS = {"by", "on", "and", "or", "unless", *FUNCTIONS}


def dashboard_queries() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def rules() -> list[dict[str, object]]:
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


QUERIES = [*dashboard_queries(), *(str(rule["expr"]) for rule in rules())]


def named(query: str) -> tuple[set[str], set[str]]:
    """Metrics and labels of ``query``, which has no strings with braces or brackets in them."""
    labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", query))
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", query)
    for group in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", bare):
        labels |= {label.strip() for label in group.split(",")}
    bare = re.sub(r"\b(?:by|on)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\b\d[\w.]*", "", bare)
    words = set(re.findall(r"[a-zA-Z_]\w*", bare)) - WORDS
    if query.startswith("label_values("):
        words, labels = words - {query.rstrip(")").rpartition(" ")[2]}, {query.rstrip(")").rpartition(" ")[2]}
    return words, labels


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_what_is_recorded(query: str) -> None:
    names, labels = named(query)
    assert names
    assert names <= SERIES.keys() | FROM_OUTSIDE
    known = OF_THE_SCRAPE | {"le"} | {label for name in names & SERIES.keys() for label in SERIES[name].labels}
    assert labels <= known
    assert query.count("(") == query.count(")")


@pytest.mark.parametrize("query", QUERIES)
def test_counters_are_asked_for_their_growth_and_gauges_are_not(query: str) -> None:
    for name in named(query)[0] & SERIES.keys():
        grown = re.search(rf"(?:rate|increase)\({name}\b", query)
        counts = not isinstance(SERIES[name], metrics.Gauge) and not query.startswith("label_values")
        assert bool(grown) == counts, name


def test_the_test_would_see_a_metric_that_is_none() -> None:
    names, labels = named('sum by (chip, colour) (rate(kernelevolve_nothing_total{shade="dark"}[5m])) / 1e6 > 0.5')
    assert (names, labels) == ({"kernelevolve_nothing_total"}, {"chip", "colour", "shade"})


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {SERIES[name].name for query in dashboard_queries() for name in named(query)[0] if name in SERIES}
    assert {metric.name for metric in metrics.ALL} == shown


def test_panels_neither_overlap_nor_lack_a_description() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        assert panel["type"] == "row" or panel["description"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    guide = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        assert f"**{rule['alert']}**" in guide
        mentioned = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        names_, labels = named(rule["expr"])
        assert mentioned <= OF_THE_SCRAPE | labels | {
            each for name in names_ & SERIES.keys() for each in SERIES[name].labels
        }


def test_every_metric_and_alert_is_explained() -> None:
    guide = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert [metric.name for metric in metrics.ALL if f"`{metric.name}`" not in guide] == []


def test_prometheus_scrapes_every_service_of_the_compose_file() -> None:
    (job,) = PROMETHEUS["scrape_configs"]
    (by_name,) = job["dns_sd_configs"]
    listening = {
        name for name, service in COMPOSE["services"].items() if "METRICS_LISTEN" in (service.get("environment") or {})
    }
    assert set(by_name["names"]) == listening
    ports = {COMPOSE["services"][name]["environment"]["METRICS_LISTEN"].rpartition(":")[2] for name in listening}
    assert ports == {str(by_name["port"])}
    mounted = {volume.split(":")[0] for volume in COMPOSE["services"]["prometheus"]["volumes"]}
    assert {f"./observability/{name}" for name in ("prometheus.yml", *PROMETHEUS["rule_files"])} <= mounted


def test_grafana_is_given_the_source_that_the_dashboard_uses() -> None:
    provisioning = FOLDER / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text(encoding="utf-8"))["datasources"]
    assert source["uid"] == DASHBOARD["templating"]["list"][0]["current"]["value"]
    (provider,) = yaml.safe_load((provisioning / "dashboards/kernelevolve.yml").read_text(encoding="utf-8"))[
        "providers"
    ]
    volumes = dict(volume.split(":")[:2] for volume in COMPOSE["services"]["grafana"]["volumes"])
    assert volumes["./observability/grafana/dashboards"] == provider["options"]["path"]
    assert volumes["./observability/grafana/provisioning"] == "/etc/grafana/provisioning"


def test_the_local_cluster_tells_prometheus_where_it_is(tmp_path: Path) -> None:
    (job,) = PROMETHEUS["scrape_configs"]
    (by_file,) = job["file_sd_configs"]
    assert (FOLDER / by_file["files"][0]).resolve() == ROOT / ".cluster" / scrape.FILE
    members = (
        Member(name="kafka", group="servers", ports={"kafka": 9092}, log=""),
        Member(name="search", group="services", ports={"grpc": 50051, "metrics": 9464}, log=""),
    )
    places = dict.fromkeys(("server", "bus_url", "store_url", "cache_url", "socket"), "")
    scrape.write(tmp_path, State(chips=("cpu-x86_64",), workers=1, members=members, **places))
    assert json.loads((tmp_path / scrape.FILE).read_text()) == [
        {"targets": ["127.0.0.1:9464"], "labels": {"component": "search"}}
    ]
    scrape.forget(tmp_path)
    assert not (tmp_path / scrape.FILE).exists()
