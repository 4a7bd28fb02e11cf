"""A candidate's process as the operating system shows it from outside: its word is not asked for."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from evaluator_svc.runner.box import EXITING, FLAGS_FIELD
from shared.errors import Fatal, Retryable

STATE_FIELD = 3 - 3
"""Of proc_pid_stat(5), counted after pid and name."""
STOPPED = "TtZX"
"""States in which a thread runs no instruction of its own."""
STOP_TIMEOUT_S = 20.0
STOP_POLL_S = 50e-6
KILL_WAIT_S = 5.0


class Observed:
    """``watch`` is a descriptor of the process (pidfd), ``nested`` whether it is the first of its own namespace.

    Methods raise ``OSError`` once the process is gone.
    """

    def __init__(self, watch: int, *, nested: bool) -> None:
        self._watch, self._nested = watch, nested
        self.pid = _pid_of(watch)
        self._root = Path(f"/proc/{self.pid}")

    @property
    def alive(self) -> bool:
        return not select.select([self._watch], [], [], 0)[0]

    def cpu_ns(self) -> int:
        """Processor time of the whole process so far."""
        # CPUCLOCK_SCHED of another process, numbered as in <linux/posix-timers.h>.
        return time.clock_gettime_ns(~self.pid << 3 | 2)

    def stop(self) -> None:
        """Ask every thread to stop, without waiting."""
        signal.pidfd_send_signal(self._watch, signal.SIGSTOP)

    def freeze(self) -> None:
        """Stop every thread; returns when the last one stands.

        Raises:
            Retryable: one did not stop in ``STOP_TIMEOUT_S``: the machine's fault, or the kernel's.
        """
        self.stop()
        until = time.monotonic() + STOP_TIMEOUT_S
        while any(stat[STATE_FIELD] not in STOPPED for stat in self._threads()):
            if time.monotonic() > until:
                raise Retryable(f"process {self.pid} did not stop within {STOP_TIMEOUT_S:g} s")
            time.sleep(STOP_POLL_S)

    def thaw(self) -> None:
        signal.pidfd_send_signal(self._watch, signal.SIGCONT)

    def threads_alive(self) -> int:
        """Threads that are not on their way out (a joined one may be listed still, with its exit flag set)."""
        return sum(not int(stat[FLAGS_FIELD]) & EXITING and stat[STATE_FIELD] not in "ZX" for stat in self._threads())

    def others(self) -> int:
        """Processes below it; in a namespace of its own there are no others."""
        try:
            listed = [task.joinpath("children").read_text() for task in self._root.joinpath("task").iterdir()]
            return sum(len(children.split()) for children in listed)
        except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
            return len(psutil.Process(self.pid).children(recursive=True))

    def filters(self) -> int | None:
        """System call filters of the thread that has fewest; None where the kernel does not tell."""
        counts = []
        for task in self._root.joinpath("task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                said = task.joinpath("status").read_text()
                found = [line.split()[1] for line in said.splitlines() if line.startswith("Seccomp_filters:")]
                counts.append(int(found[0]) if found else None)
        known = [count for count in counts if count is not None]
        return min(known) if known and len(known) == len(counts) else None

    def kill(self) -> None:
        """Send SIGKILL to all of it, without waiting."""
        if not self._nested:  # what it may have started is in its group; a namespace dies with its first process
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._watch, signal.SIGKILL)

    def wait_gone(self) -> None:
        """Raises:
        Fatal: it survived SIGKILL for ``KILL_WAIT_S``.
        """
        if not select.select([self._watch], [], [], KILL_WAIT_S)[0]:
            raise Fatal(f"process {self.pid} survived SIGKILL for {KILL_WAIT_S:.0f} s")

    def _threads(self) -> list[list[str]]:
        found = []
        for task in self._root.joinpath("task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found.append(task.joinpath("stat").read_text().rpartition(")")[2].split())
        return found


def _pid_of(watch: int) -> int:
    for line in Path(f"/proc/self/fdinfo/{watch}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    raise Fatal("a process descriptor names no process")
