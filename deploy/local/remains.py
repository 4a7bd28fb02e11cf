"""Processes that belong to a cluster, found by the mark in their environment or by their parents."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from deploy.local.layout import Group
from deploy.local.supervision import GROUP_MARK, MARK

END_S = 10.0
"""For processes that were told to end."""
POLL_S = 0.05


def marked(folder: Path) -> set[psutil.Process]:
    """Every process that was started as part of the cluster in ``folder``."""
    return {process for process in psutil.process_iter() if _variable(process, MARK) == str(folder)}


def below(process: psutil.Process) -> set[psutil.Process]:
    """Everything it started that still runs: a box may have cleared its environment."""
    try:
        return set(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return set()


def describe(process: psutil.Process) -> str:
    try:
        return f"process {process.pid} ({' '.join(process.cmdline())[:80]})"
    except psutil.Error:
        return f"process {process.pid}"


def alive(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Those that still run. What has ended and was not collected by its parent does not."""
    return {process for process in processes if _runs(process)}


def end(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """SIGTERM, then SIGKILL for those that stay: supervisord, which would start others again, then services, which
    need the servers to end well, then servers. Returns what would not die.
    """
    waves: dict[str, set[psutil.Process]] = {"": set(), Group.SERVICES: set(), Group.SERVERS: set()}
    for process in processes:
        waves.setdefault(_variable(process, GROUP_MARK), set()).add(process)
    return set().union(*(_end(wave) for wave in waves.values()))


def _end(wave: set[psutil.Process]) -> set[psutil.Process]:
    left = alive(wave)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            _send(process, number)
        left = _outliving(left)
    return left


def _outliving(processes: set[psutil.Process]) -> set[psutil.Process]:
    """Those that still run after ``END_S``. Not ``psutil.wait_procs``: it waits for what nobody collects."""
    deadline = time.monotonic() + END_S
    left = alive(processes)
    while left and time.monotonic() < deadline:
        time.sleep(POLL_S)
        left = alive(left)
    return left


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _variable(process: psutil.Process, name: str) -> str:
    """A variable of its environment; empty when it has none, or is somebody else's."""
    if process.pid == os.getpid():
        return ""
    try:
        return process.environ().get(name, "")
    except (psutil.Error, OSError):
        return ""
