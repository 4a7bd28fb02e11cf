"""Taking a cluster down: services, then servers, then whatever is left of them; nothing may stay."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from deploy.local import remains, scrape, state
from deploy.local.errors import ClusterError
from deploy.local.layout import Group
from deploy.local.ports import is_free
from deploy.local.starting import POLL_S
from deploy.local.state import State
from deploy.local.supervision import Keeper

PORTS_S = 5.0


def stop(folder: Path, tell: Callable[[str], None]) -> None:
    """Stop the cluster of ``folder``, in order when its supervisor answers.

    Raises:
        ClusterError: a process or a port is still there.
    """
    found = state.read(folder)
    belong = remains.marked(folder)
    belong = belong.union(*(remains.below(process) for process in belong))
    if found is not None:
        keeper = Keeper(found.socket, found.groups)
        if keeper.answers():
            _in_order(keeper, found, tell)
    left = remains.alive(belong | remains.marked(folder))
    for process in left:
        tell(f"left over: {remains.describe(process)}")
    stuck = [remains.describe(process) for process in remains.end(left)]
    busy = [f"port {port}" for port in _staying(() if found is None else found.ports)]
    if stuck or busy:
        raise ClusterError(f"still there: {', '.join([*stuck, *busy])}")
    if found is not None and Path(found.socket).parent != folder:
        shutil.rmtree(Path(found.socket).parent, ignore_errors=True)
    state.forget(folder)
    scrape.forget(folder)


def _staying(ports: Iterable[int]) -> list[int]:
    """Ports that are not free soon: a process counts as ended a moment before its last thread has let go of them."""
    deadline = time.monotonic() + PORTS_S
    left = [port for port in ports if not is_free(port)]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = [port for port in left if not is_free(port)]
    return left


def _in_order(keeper: Keeper, found: State, tell: Callable[[str], None]) -> None:
    supervisor = psutil.Process(keeper.pid())
    for group in reversed(Group):
        names = [member.name for member in found.members if member.group == group]
        for name in names:
            keeper.stop(name, wait=False)
        while any(keeper.info()[name]["pid"] for name in names):
            time.sleep(POLL_S)
        tell(f"{group} stopped")
    keeper.shutdown()
    while remains.alive({supervisor}):
        time.sleep(POLL_S)
