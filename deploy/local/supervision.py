"""Keeping processes up with supervisord: its configuration (pure), starting it, and talking to it."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import xmlrpc.client
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.local.layout import Group, Process
from deploy.local.servers import EXTRA
from shared.errors import UserError

SOCKET_PATH_MAX = 100
"""The kernel takes 107 bytes, and supervisord binds a longer name first: with its process id appended."""
STOP_S = {Group.SERVICES: 60, Group.SERVERS: 20}
"""From SIGTERM to SIGKILL: more than a service's drain takes (10 s for gRPC calls, then 30 s for work in progress)."""
STEADY_S = 3
"""A process that ends sooner is started again after a pause that grows by a second each time."""
RETRIES = 1_000_000
LOG_BYTES = 20_000_000
LOG_BACKUPS = 2
LOG = "supervisord.log"
MARK = "KERNELEVOLVE_CLUSTER"
"""In the environment of everything a cluster runs: the cluster's folder."""
GROUP_MARK = "KERNELEVOLVE_CLUSTER_GROUP"
"""In the environment of everything but supervisord."""


def config(processes: Sequence[Process], folder: Path, logs: Path, socket_path: Path) -> str:
    """What supervisord reads."""
    head = f"""\
[unix_http_server]
file={_text(socket_path)}

[supervisord]
logfile={_text(logs / LOG)}
logfile_maxbytes=0
pidfile={_text(folder / "supervisord.pid")}
childlogdir={_text(logs)}
nodaemon=false

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""
    groups = [
        f"[group:{group}]\nprograms={','.join(p.name for p in processes if p.group is group)}\n" for group in Group
    ]
    return "\n".join([head, *groups, *(_program(process, logs) for process in processes)])


def _program(process: Process, logs: Path) -> str:
    """Only the process itself is told to stop: an evaluator still needs its children while it drains. All are killed
    when the time is up.
    """
    told = {**process.environment, GROUP_MARK: process.group}
    environment = ",".join(f'{name}="{_text(value)}"' for name, value in told.items())
    return f"""\
[program:{process.name}]
command={_text(shlex.join(process.argv))}
environment={environment}
autostart=false
autorestart=true
startsecs={STEADY_S}
startretries={RETRIES}
stopwaitsecs={STOP_S[process.group]}
killasgroup=true
redirect_stderr=true
stdout_logfile={_text(logs / f"{process.name}.log")}
stdout_logfile_maxbytes={LOG_BYTES}
stdout_logfile_backups={LOG_BACKUPS}
"""


def _text(value: object) -> str:
    """``value`` as supervisord's configuration reads it back.

    Raises:
        UserError: it cannot hold this text.
    """
    text = str(value)
    if re.search(r'["\n]|\s[;#]', text):
        raise UserError("holds a quote, or a comment sign after a space", where=repr(text), hint="use another folder")
    return text.replace("%", "%%")


def socket_path(folder: Path) -> Path:
    """Inside ``folder``, or in a new temporary folder where that path is too long for a socket."""
    inside = folder / "supervisor.sock"
    if len(os.fsencode(inside)) <= SOCKET_PATH_MAX:
        return inside
    return Path(tempfile.mkdtemp(prefix="kernelevolve-")) / "supervisor.sock"


def start(configuration: Path, environment: Mapping[str, str]) -> None:
    """Start supervisord, which leaves its starter and its terminal.

    Raises:
        UserError: it does not accept its configuration.
    """
    done = subprocess.run(
        [sys.executable, "-m", "supervisor.supervisord", "-c", str(configuration)],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UserError(done.stderr.strip(), where=str(configuration))


def require() -> None:
    """Raises ``UserError`` when supervisord is not installed."""
    try:
        import supervisor.xmlrpc  # noqa: F401
    except ImportError as error:
        raise UserError("package `supervisor` is not installed", hint=f"pip install 'kernelevolve[{EXTRA}]'") from error


class Keeper:
    """A running supervisord. Every call raises ``OSError`` when it is not there."""

    def __init__(self, path: str, groups: Mapping[str, str]) -> None:
        self._path, self._groups = path, groups

    def start(self, name: str) -> None:
        """Does nothing when it runs already."""
        self._tolerant("startProcess", self._full(name), False)

    def stop(self, name: str, *, wait: bool) -> None:
        """Does nothing when it does not run."""
        self._tolerant("stopProcess", self._full(name), wait)

    def info(self) -> dict[str, dict[str, Any]]:
        """By process name, supervisord's own words: ``statename``, ``pid``, ``start``, ``now``, ``spawnerr``."""
        with self._proxy() as supervisor:
            return {row["name"]: row for row in supervisor.getAllProcessInfo()}

    def pid(self) -> int:
        """Of supervisord itself."""
        with self._proxy() as supervisor:
            return int(supervisor.getPID())

    def shutdown(self) -> None:
        with self._proxy() as supervisor:
            supervisor.shutdown()

    def answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self._path) == 0

    def _full(self, name: str) -> str:
        return f"{self._groups[name]}:{name}"

    def _tolerant(self, method: str, *arguments: object) -> None:
        from supervisor.xmlrpc import Faults

        with self._proxy() as supervisor:
            try:
                getattr(supervisor, method)(*arguments)
            except xmlrpc.client.Fault as fault:
                if fault.faultCode not in (Faults.ALREADY_STARTED, Faults.NOT_RUNNING):
                    raise

    @contextmanager
    def _proxy(self) -> Iterator[Any]:
        from supervisor.xmlrpc import SupervisorTransport

        with xmlrpc.client.ServerProxy("http://localhost", SupervisorTransport(serverurl=f"unix://{self._path}")) as it:
            yield it.supervisor


def starts(logs: Path) -> dict[str, int]:
    """How often each process was started, by supervisord's own log."""
    counts: dict[str, int] = {}
    log = logs / LOG
    if log.exists():
        for name in re.findall(r"spawned: '([^']+)' with pid", log.read_text(encoding="utf-8", errors="replace")):
            counts[name] = counts.get(name, 0) + 1
    return counts
