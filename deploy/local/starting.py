"""Bringing a cluster up: servers, then services, each awaited; the first that ends instead fails the start."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from deploy.local import layout, pools, probes, scrape, state, supervision
from deploy.local.errors import ClusterError
from deploy.local.layout import Group, Layout, Process
from deploy.local.ports import free_ports
from deploy.local.servers import HOST
from deploy.local.state import Member, State
from deploy.local.supervision import MARK, Keeper
from shared import chips
from shared.errors import ChipError, UserError

READY_S = 60.0
READY_PER_PROCESS_S = 3.0
"""How long to wait until all is ready: a flat time and a share for each process, because they start at once."""
POLL_S = 0.1
LOG_LINES = 20
DATA = ("mongo", "redis")
"""Folders of the servers that keep something."""
FAILED = ("BACKOFF", "EXITED", "FATAL")


def check(wanted: Layout) -> None:
    """Raises ``UserError`` when this machine cannot run it."""
    if min(wanted.workers, wanted.searches) < 1 or not wanted.chips:
        raise UserError("needs at least one chip, one worker and one process of every service", where="up")
    for chip in wanted.chips:
        for tool, how in chips.missing_tools(chips.load(chip)).items():
            raise ChipError(f"chip `{chip}` needs {tool}", hint=how)
    supervision.require()


def start(folder: Path, wanted: Layout, tell: Callable[[str], None]) -> State:
    """Start everything in ``folder``, whose last cluster is gone. The state file is there before any process is.

    Raises:
        UserError: something is not installed.
        ClusterError: a process ended, or was not ready in time.
    """
    processes = layout.processes(wanted, folder, free_ports(wanted.port_count))
    found = _write(folder, wanted, processes)
    supervision.start(folder / "supervisord.conf", _environment(folder, wanted))
    began = time.monotonic()
    deadline = began + READY_S + READY_PER_PROCESS_S * len(processes)
    keeper = Keeper(found.socket, found.groups)

    def ready(what: str) -> None:
        tell(f"{what:<28} {time.monotonic() - began:5.1f} s")

    _start_group(Group.SERVERS, keeper, found, deadline, ready)
    _found_replica_set(found)
    _start_group(Group.SERVICES, keeper, found, deadline, ready)
    _await_pools(wanted, found, deadline)
    for chip in wanted.chips:
        ready(f"pool {chip}")
    return found


def _environment(folder: Path, wanted: Layout) -> dict[str, str]:
    return {**layout.TUNED, **os.environ, **wanted.environment, MARK: str(folder)}


def _write(folder: Path, wanted: Layout, processes: Sequence[Process]) -> State:
    """Folders, supervisord's configuration and the state file; logs of the last time go."""
    logs = folder / state.LOGS
    for place in (logs, *(folder / name for name in DATA)):
        place.mkdir(parents=True, exist_ok=True)
    for log in logs.iterdir():
        log.unlink()
    socket = supervision.socket_path(folder)
    text = supervision.config(processes, folder, logs, socket)
    (folder / "supervisord.conf").write_text(text, encoding="utf-8")
    found = _state(wanted, processes, logs, socket)
    state.write(folder, found)
    scrape.write(folder, found)
    return found


def _state(wanted: Layout, processes: Sequence[Process], logs: Path, socket: Path) -> State:
    search = next(process for process in processes if process.name == layout.SEARCH).environment
    return State(
        server=search["GRPC_LISTEN"],
        chips=wanted.chips,
        workers=wanted.workers,
        bus_url=search["BUS_URL"],
        store_url=search["STORE_URL"],
        cache_url=search["CACHE_URL"],
        socket=str(socket),
        members=tuple(
            Member(name=p.name, group=p.group, ports=p.ports, log=str(logs / f"{p.name}.log")) for p in processes
        ),
    )


def _start_group(group: Group, keeper: Keeper, found: State, deadline: float, ready: Callable[[str], None]) -> None:
    """Start its members and wait until each answers. What they need is there, so that one that ends has failed."""
    waiting = {member.name: member for member in found.members if member.group == group}
    for name in waiting:
        keeper.start(name)
    while True:
        for name in sorted(probes.ready(waiting.values())):
            del waiting[name]
            ready(name)
        if not waiting:
            return
        rows = keeper.info()
        for name, member in waiting.items():
            if rows[name]["statename"] in FAILED or supervision.starts(Path(member.log).parent).get(name, 0) > 1:
                raise ClusterError(f"{name} ended before it was ready{_tail(member) or ': ' + rows[name]['spawnerr']}")
        if time.monotonic() > deadline:
            raise ClusterError("\n".join(f"{name} is not ready yet{_tail(member)}" for name, member in waiting.items()))
        time.sleep(POLL_S)


def _found_replica_set(found: State) -> None:
    from shared.store.mongo import initiate_replica_set

    asyncio.run(initiate_replica_set(HOST, found.member("mongo").ports["mongo"]))


def _await_pools(wanted: Layout, found: State, deadline: float) -> None:
    while True:
        counts = asyncio.run(pools.announced(found.bus_url))
        missing = [chip for chip in wanted.chips if counts[chip] < wanted.workers]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise ClusterError(
                f"of {wanted.workers} workers for each of {', '.join(missing)} these are there: {dict(counts)}"
            )
        time.sleep(POLL_S)


def _tail(member: Member) -> str:
    """The end of its log, and where that is; empty when it wrote none."""
    log = Path(member.log)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return "".join(f"\n  | {line}" for line in lines[-LOG_LINES:]) + (f"\n  ({log})" if lines else "")
