"""A whole system on this machine: three servers and the services, each a process of its own.

Example:
    >>> cluster = Cluster(Path(".cluster"))
    >>> cluster.up(Layout(chips=("simulated",), workers=8))
    >>> cluster.kill("evaluator-simulated-3")      # SIGKILL; it is started again
    >>> cluster.wait_until_ready()
    >>> cluster.down()
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from deploy.local import probes, remains, starting, state, stopping, supervision
from deploy.local.errors import ClusterError
from deploy.local.layout import Layout
from deploy.local.state import Member, State
from deploy.local.supervision import Keeper
from shared.errors import UserError

Tell = Callable[[str], None]


NOBODY = 1 << 30
"""No process has this id: the kernel's largest is 2^22."""


def silent(_line: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One process now. ``pid`` is 0 while it does not run; ``restarts`` counts since ``up``."""

    name: str
    state: str
    pid: int
    uptime_s: float
    ports: Mapping[str, int]
    ready: bool
    restarts: int
    log: str


class Cluster:
    """The cluster whose data, logs and state are in ``folder``; any process may hold one and act on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    # --- all of it ----------------------------------------------------------------------------------------------------

    def up(self, wanted: Layout, tell: Tell = silent) -> State:
        """Start everything and wait until it is ready. ``tell`` is called with a line for each step.

        Raises:
            UserError: it runs already, an unknown chip, or something is not installed.
            ClusterError: a process did not become ready; everything was stopped again.
        """
        starting.check(wanted)
        with self._alone():
            if self.running() is not None:
                raise UserError("a cluster runs here already", where=str(self.folder), hint="make status, make down")
            if self._remains():
                tell("what an earlier cluster left behind is ended first")
                stopping.stop(self.folder, tell)
            try:
                return starting.start(self.folder, wanted, tell)
            except BaseException:
                stopping.stop(self.folder, tell)
                raise

    def down(self, tell: Tell = silent, *, drop: bool = False) -> bool:
        """Stop services, then servers; False when there was nothing to stop. ``drop`` removes data and logs too.

        Raises:
            ClusterError: a process or a port is still there.
        """
        if not self.folder.exists():
            return False
        with self._alone():
            ran = self._remains()
            if ran:
                stopping.stop(self.folder, tell)
        if drop:
            shutil.rmtree(self.folder)
        return ran

    def running(self) -> State | None:
        """What runs, or None when no supervisor answers."""
        found = state.read(self.folder)
        return found if found is not None and _keeper(found).answers() else None

    def status(self) -> tuple[Status, ...]:
        """Every process in starting order; empty when no cluster runs."""
        found = self.running()
        if found is None:
            return ()
        rows = _keeper(found).info()
        starts = supervision.starts(self.folder / state.LOGS)
        ready = probes.ready(found.members)
        return tuple(_status(member, rows[member.name], starts, member.name in ready) for member in found.members)

    def wait_until_ready(self, names: Iterable[str] | None = None, within_s: float = starting.READY_S) -> None:
        """Until the processes (default all) answer, however often they are started again meanwhile.

        Raises:
            ClusterError: they did not.
        """
        found = self._state()
        members = found.members if names is None else tuple(found.member(name) for name in names)
        deadline = time.monotonic() + within_s
        while missing := {member.name for member in members} - probes.ready(members):
            if time.monotonic() > deadline:
                raise ClusterError(f"not ready after {within_s:.0f} s: {', '.join(sorted(missing))}")
            time.sleep(starting.POLL_S)

    # --- one process --------------------------------------------------------------------------------------------------

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to one process, whose id is returned; when it ends it is started again.

        After SIGKILL it has ended when this returns.

        Raises:
            UserError: no such process, or it does not run now.
        """
        try:
            process = psutil.Process(int(self._row(name)["pid"]) or NOBODY)
            process.send_signal(number)
            if number is signal.SIGKILL:
                process.wait()
        except psutil.NoSuchProcess as error:
            raise UserError("does not run now", where=name) from error
        return process.pid

    def stop(self, name: str) -> None:
        """Stop one process as ``down`` would, and leave it so. Raises ``UserError`` when there is no such process."""
        self._row(name)
        _keeper(self._state()).stop(name, wait=True)

    def start(self, name: str) -> None:
        """Start what ``stop`` stopped; ``wait_until_ready`` waits for it."""
        self._row(name)
        _keeper(self._state()).start(name)

    def restart(self, name: str) -> None:
        """Drain it and start it again; ``wait_until_ready`` waits for it."""
        self.stop(name)
        self.start(name)

    def _state(self) -> State:
        found = self.running()
        if found is None:
            raise UserError("no cluster runs here", where=str(self.folder), hint="make up")
        return found

    def _row(self, name: str) -> dict[str, Any]:
        rows = _keeper(self._state()).info()
        if name not in rows:
            raise UserError(f"no process `{name}`", where=str(self.folder), hint=f"there are {', '.join(rows)}")
        return rows[name]

    def _remains(self) -> bool:
        return state.read(self.folder) is not None or bool(remains.marked(self.folder))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / "lock", timeout=0):
                yield
        except Timeout as error:
            raise UserError("another `up` or `down` is at work", where=str(self.folder)) from error


def _keeper(found: State) -> Keeper:
    return Keeper(found.socket, found.groups)


def _status(member: Member, row: Mapping[str, Any], starts: Mapping[str, int], ready: bool) -> Status:
    pid = int(row["pid"])
    return Status(
        name=member.name,
        state="RUNNING" if ready else row["statename"],
        pid=pid,
        uptime_s=float(row["now"] - row["start"]) if pid else 0.0,
        ports=member.ports,
        ready=ready,
        restarts=max(0, starts.get(member.name, 0) - 1),
        log=member.log,
    )
