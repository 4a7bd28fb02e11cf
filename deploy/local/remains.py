"""Processes that belong to a cluster, found by the mark in their environment or by their parents."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

from deploy.local.supervision import MARK

END_S = 10.0
"""For processes that were told to end."""


def marked(folder: Path) -> set[psutil.Process]:
    """Every process that was started as part of the cluster in ``folder``."""
    return {process for process in psutil.process_iter() if _mark(process) == str(folder)}


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
    """SIGTERM, then SIGKILL for those that stay. Returns what would not die."""
    left = alive(processes)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            _send(process, number)
        psutil.wait_procs(left, timeout=END_S)
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


def _mark(process: psutil.Process) -> str:
    if process.pid == os.getpid():
        return ""
    try:
        return process.environ().get(MARK, "")
    except (psutil.Error, OSError):
        return ""
