"""The box of one candidate: started with its buffers, spoken to over two pipes, and asked at the end why it ended.

Everything here blocks; ``process.Runner`` calls it from one thread of its own, which must outlive the box.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import secrets
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from evaluator_svc import syscalls
from evaluator_svc.runner import ending, protocol
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.program import machine_sandbox, runtime_mounts, stopwatch
from evaluator_svc.sandbox import Box, Boxed, Limits, Mount
from shared.errors import Fatal

KEPT_PAGES = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "2147483648",
    "MALLOC_TOP_PAD_": "268435456",
}
"""glibc keeps freed pages, for kernels and baselines alike: else page faults are timed, and charged to one side."""
LIBRARY = "/ke/kernel.so"
PROGRAM_BYTES = 1 << 29
"""Address space of the runner program itself: libraries, stack, and the heap's pad of ``MALLOC_TOP_PAD_``."""
THREAD_BYTES = 160 << 20
"""Address space of one more thread: its stack and glibc's reservation of 128 MiB for its arena."""
OUTPUT_BYTES = 1 << 20
"""What a kernel may print before it is killed."""
THREADS_MAX = 256
FLAGS_FIELD, THREADS_FIELD = 9 - 3, 20 - 3
"""Of proc_pid_stat(5), counted after pid and name."""
EXITING = 0x4
"""PF_EXITING of <linux/sched.h>."""
START_TIMEOUT_S = 20.0
END_TIMEOUT_S = 5.0
"""How long a process may take to be gone once its channel is closed, before it counts as closed on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    """Memory a kernel may allocate besides its buffers (bytes), processor time (s) and time to load (s)."""

    memory_bytes: int = 2 << 30
    cpu_s: int = 600
    load_s: float = 10.0
    stack_bytes: int = 8 << 20


class RunnerBox:
    """Starts on construction.

    Raises:
        Fatal: the box, or the program in it, did not start.
    """

    def __init__(
        self,
        library: Path,
        buffers: Buffers,
        *,
        limits: RunnerLimits,
        threads: int,
        cpus: tuple[int, ...],
        stained: bool,
    ) -> None:
        self.level = ""
        self._buffers, self._limits, self._threads, self._cpus = buffers, limits, threads, cpus
        self._stained = stained
        with ExitStack() as resources:
            page = os.memfd_create("ke-report")
            resources.callback(os.close, page)
            os.ftruncate(page, mmap.PAGESIZE)
            self._page = mmap.mmap(page, mmap.PAGESIZE)
            resources.callback(self._page.close)
            self._output = os.memfd_create("ke-printed")
            resources.callback(os.close, self._output)
            self._reply, replies = os.pipe()
            resources.callback(os.close, self._reply)
            commands, self._command = os.pipe()
            resources.callback(os.close, self._command)
            try:
                self._boxed = self._start(library, (page, buffers.inputs_fd, buffers.outputs_fd, commands, replies))
            finally:
                os.close(commands)
                os.close(replies)
            resources.callback(self.kill)
            self._pid = self._greet()
            self._resources = resources.pop_all()

    def load(self) -> RunFailure | None:
        """Have the kernel loaded; its constructors run now, under the same rules as its calls."""
        answer, _ = self.ask(calls=0, first_set=0, timeout_s=self._limits.load_s)
        if isinstance(answer, RunFailure):
            return answer
        if answer.kind == protocol.Kind.LOAD:
            return self.end(ending.not_loaded(self.report()))
        return None

    def ask(self, *, calls: int, first_set: int, timeout_s: float) -> tuple[protocol.Reply | RunFailure, int]:
        """Send a command and wait for its answer; also the controller's time for it, in ns.

        Each command carries a fresh random number, so an answer written before the command is told from a true one.
        """
        sequence = secrets.randbits(32)
        answer, elapsed = self._exchange(
            protocol.command(calls=calls, first_set=first_set, sequence=sequence), timeout_s
        )
        if isinstance(answer, protocol.Reply) and answer.sequence != sequence:
            return self.end(ending.spoke()), elapsed
        return answer, elapsed

    def end(self, cause: RunFailure | None) -> RunFailure:
        """Kill the box; without a known cause, find out why it ended."""
        status = None if cause else self._boxed.wait(END_TIMEOUT_S)
        self._boxed.kill()
        return cause or ending.classify(self.report(), status, self._buffers.layout)

    def report(self) -> protocol.Report:
        return protocol.report(self._page[:])

    def printed(self, most: int) -> str:
        """The beginning of what the kernel wrote to its standard output and error."""
        return os.pread(self._output, most, 0).decode("utf-8", "replace")

    def cpu_ns(self) -> int:
        """Processor time of the whole process so far.

        Raises:
            OSError: the process is gone.
        """
        # CPUCLOCK_SCHED of another process, numbered as in <linux/posix-timers.h>.
        return time.clock_gettime_ns(~self._pid << 3 | 2)

    def threads_alive(self) -> int:
        """Threads of the process that are not on their way out.

        A joined thread may still be listed, with its exit flag set: the kernel sets that before it wakes the joiner.

        Raises:
            OSError: the process is gone.
        """
        process = Path(f"/proc/{self._pid}")
        listed = int(_stat(process)[THREADS_FIELD])
        if listed <= self._threads:
            return listed
        alive = 0
        for task in process.joinpath("task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                alive += not int(_stat(task)[FLAGS_FIELD]) & EXITING
        return alive

    def kill(self) -> None:
        self._boxed.kill()

    def interrupt(self) -> None:
        """Send the kill without waiting for its effect; for other threads."""
        self._boxed.signal()

    def close(self) -> None:
        self._resources.close()

    def _start(self, library: Path, fds: tuple[int, ...]) -> Boxed:
        sandbox = machine_sandbox()
        kernel = Mount(source=library, target=LIBRARY, opened_before=True)
        threads = {"OMP_NUM_THREADS": str(self._threads), "OMP_WAIT_POLICY": "PASSIVE", "OMP_DYNAMIC": "false"}
        box = Box(mounts=(*runtime_mounts(), kernel), environment={**KEPT_PAGES, **threads}, own_user=True)
        configuration = protocol.configuration(
            confinement=sandbox.confinement(box, self._box_limits(), syscalls.runner_filter(loading=True)),
            loaded_filter=syscalls.runner_filter(loading=False),
            library=sandbox.path(kernel),
            fds=fds,
            cpus=self._cpus,
            buffers=self._buffers,
            stained=self._stained,
        )
        return sandbox.start("run", configuration, (), box, fds=fds, output=self._output)

    def _greet(self) -> int:
        ready, _ = self._exchange(b"", START_TIMEOUT_S)
        if not isinstance(ready, protocol.Reply):
            raise Fatal(f"the runner did not start: {self.printed(400).strip() or self._boxed.process.returncode}")
        self.level = machine_sandbox().level(ready.code, self._boxed.user)
        return self._boxed.first_process()

    def _box_limits(self) -> Limits:
        memory = self._limits.memory_bytes + self._buffers.layout.span + PROGRAM_BYTES
        return Limits(
            address_space=memory + (self._threads - 1) * THREAD_BYTES,
            cpu_s=self._limits.cpu_s,
            file_bytes=OUTPUT_BYTES,
            processes=THREADS_MAX,
            stack_bytes=self._limits.stack_bytes,
        )

    def _exchange(self, command: bytes, timeout_s: float) -> tuple[protocol.Reply | RunFailure, int]:
        # One byte more than a reply, so that two replies at once are noticed.
        answer = ctypes.create_string_buffer(protocol.REPLY.size + 1)
        elapsed = ctypes.c_int64()
        got = stopwatch().ke_round_trip(
            self._command, command, len(command), self._reply, answer, len(answer), int(timeout_s * 1000), elapsed
        )
        if got == -1:
            return self.end(ending.timed_out(timeout_s)), 0
        if got <= 0:
            return self.end(None), 0
        reply = protocol.reply(answer.raw[:got])
        return reply or self.end(ending.spoke()), elapsed.value


def _stat(directory: Path) -> list[str]:
    """Fields of proc_pid_stat(5) after the name, which stands in brackets and may hold anything."""
    return directory.joinpath("stat").read_text().rpartition(")")[2].split()
