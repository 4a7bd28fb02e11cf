"""Which processes make up a local cluster, and what each is told (pure)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from deploy.local import servers
from deploy.local.servers import HOST, Command

SERVERS = ("kafka", "mongo", "redis")
SEARCH = "search"
SERVICES = ("knowledge", SEARCH, "synthesizer")
EVALUATOR = "evaluator"
PORTS_PER_SERVICE = 2

TUNED = {
    # Tansu holds back an answer to a fetch for up to half the wait, and a member that joins for about half the session.
    "KAFKA_FETCH_MAX_WAIT_MS": "30",
    "KAFKA_SESSION_TIMEOUT_MS": "3000",
    "KAFKA_HEARTBEAT_INTERVAL_MS": "500",
    # Every `up` begins with an empty broker: unfinished searches should not stand still for long.
    "SEARCH_ASK_AGAIN_AFTER_S": "10",
    # There, a group whose members all leave at the same time never forms again; silent members are missed instead.
    "KAFKA_LEAVE_ON_CLOSE": "false",
    "KAFKA_REPLICATION": "1",
}
"""Defaults that suit this cluster; the environment of whoever starts it wins."""


class Group(StrEnum):
    SERVERS = "servers"
    SERVICES = "services"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What is asked for. ``workers`` evaluators per chip; ``environment`` is added to that of every process.

    ``searches`` processes of the search service: with two of them, one answers clients while the other restarts.
    """

    chips: tuple[str, ...] = ("cpu-x86_64",)
    workers: int = 2
    searches: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def port_count(self) -> int:
        services = len(SERVICES) - 1 + self.searches + self.workers * len(self.chips)
        return len(SERVERS) + PORTS_PER_SERVICE * services


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process to keep running. ``ports`` by what is spoken there; ``environment`` wins over all others."""

    name: str
    group: Group
    argv: tuple[str, ...]
    ports: Mapping[str, int]
    environment: Mapping[str, str] = field(default_factory=dict)


def processes(layout: Layout, folder: Path, ports: Sequence[int]) -> tuple[Process, ...]:
    """The three servers, then the services. ``folder`` keeps the servers' data; ``ports`` as many as ``port_count``.

    Raises:
        UserError: a server's package is not installed.
    """
    assert len(ports) == layout.port_count
    kafka, mongo, redis, *rest = ports
    commands = (
        (servers.broker(kafka), kafka),
        (servers.mongo(mongo, folder / "mongo"), mongo),
        (servers.redis(redis, folder / "redis"), redis),
    )
    pairs = list(zip(rest[::2], rest[1::2], strict=True))
    shared = {
        "BUS_URL": servers.bus_url(kafka),
        "STORE_URL": servers.store_url(mongo),
        "CACHE_URL": servers.cache_url(redis),
        "KNOWLEDGE_URL": f"grpc://{HOST}:{pairs[SERVICES.index('knowledge')][0]}",
    }
    named = list(_services(layout))
    shared["EVALUATOR_URLS"] = _first_workers(named, pairs)
    services = (_service(*one, pair, shared) for one, pair in zip(named, pairs, strict=True))
    return (*(_server(command, port) for command, port in commands), *services)


def _services(layout: Layout) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Name, package and own environment of each."""
    for name in SERVICES:
        yield name, f"{name}_svc", {}
    for number in range(2, layout.searches + 1):
        yield f"{SEARCH}-{number}", f"{SEARCH}_svc", {}
    for chip in layout.chips:
        for number in range(1, layout.workers + 1):
            yield f"{EVALUATOR}-{chip}-{number}", f"{EVALUATOR}_svc", {"EVALUATOR_CHIP": chip}


def _first_workers(named: Sequence[tuple[str, str, dict[str, str]]], pairs: Sequence[tuple[int, int]]) -> str:
    """Who builds what models write, a worker for each chip: ``EVALUATOR_URLS`` of the synthesizer."""
    found: dict[str, str] = {}
    for (_, _, own), (grpc, _) in zip(named, pairs, strict=True):
        if "EVALUATOR_CHIP" in own:
            found.setdefault(own["EVALUATOR_CHIP"], f"grpc://{HOST}:{grpc}")
    return ",".join(f"{chip}={url}" for chip, url in found.items())


def _server(command: Command, port: int) -> Process:
    return Process(
        name=command.name,
        group=Group.SERVERS,
        argv=command.argv,
        ports={command.name: port},
        environment=command.environment,
    )


def _service(
    name: str, package: str, own: Mapping[str, str], ports: tuple[int, int], shared: Mapping[str, str]
) -> Process:
    grpc, metrics = ports
    listen = {"GRPC_LISTEN": f"{HOST}:{grpc}", "METRICS_LISTEN": f"{HOST}:{metrics}"}
    return Process(
        name=name,
        group=Group.SERVICES,
        argv=(sys.executable, "-m", package),
        ports={"grpc": grpc, "metrics": metrics},
        environment={**shared, **listen, **own},
    )
