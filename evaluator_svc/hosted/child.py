"""One candidate's process, from the controller's side: forked by a zygote, met, spoken to, frozen and read, ended.

Everything here blocks; ``process.HostedRunner`` calls it from one thread of its own.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import secrets
import select
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator_svc.hosted import box, rules, wire
from evaluator_svc.hosted.memory import Memory
from evaluator_svc.hosted.observed import Observed
from evaluator_svc.hosted.wire import Verb
from evaluator_svc.hosted.zygote import Zygote
from evaluator_svc.runner import ending, protocol
from evaluator_svc.runner.box import OUTPUT_BYTES, THREAD_BYTES, THREADS_MAX, RunnerLimits
from evaluator_svc.runner.buffers import Buffers
from evaluator_svc.runner.ending import RunFailure
from evaluator_svc.runner.program import machine_sandbox, stopwatch
from evaluator_svc.sandbox import UNLIMITED, Box, Limits, text
from shared.errors import Fatal, Retryable

CPU = "cpu"
START_TIMEOUT_S = 20.0
END_TIMEOUT_S = 5.0
FILE_BYTES = 64 << 20
"""Of one file in a candidate's private /tmp; what it prints is cut by the same limit."""
FILES, GPU_FILES = 64, 1024
"""Descriptors: a GPU's driver opens many."""
SLACK_BYTES = 1 << 29
"""Address space for what the interpreter and the heap's pad of ``MALLOC_TOP_PAD_`` take besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is run: the module's text, the directory of its extensions, and how it is called.

    ``told`` goes to the candidate's process as it is; it holds nothing that a kernel may not know.
    """

    told: Mapping[str, Any]
    extensions: Path | None
    threads: int
    cpus: tuple[int, ...]
    stained: bool


class Child:
    """Starts on construction, confined, with nothing of the candidate's loaded yet.

    Raises:
        Fatal: it did not start.
        Retryable: the zygote is gone.
    """

    def __init__(
        self,
        zygote: Zygote,
        candidate: Candidate,
        buffers: Buffers,
        limits: RunnerLimits,
        *,
        results: int,
        kept: bool = False,
    ) -> None:
        """``results``: how many there are to tell of, in all sets. ``kept``: the controller reads them on a device."""
        self._zygote, self._buffers, self._limits, self._kept = zygote, buffers, limits, kept
        self.exporting = False
        """The candidate's side copies results to shared memory: they are on a device, or in memory of no access."""
        with ExitStack() as resources:
            page = os.memfd_create("ke-report")
            resources.callback(os.close, page)
            os.ftruncate(page, wire.page_bytes(results, kept=kept))
            self._page = mmap.mmap(page, 0)
            resources.callback(self._page.close)
            self._output = os.memfd_create("ke-printed")
            resources.callback(os.close, self._output)
            with ExitStack() as passed:  # what the child has of its own from then on
                self._reply, replies = _pipe(resources, passed)
                commands, self._command = _pipe(passed, resources)
                self._status, status = _pipe(resources, passed)
                ours, theirs = map(passed.enter_context, socket.socketpair())
                words = _file(json.dumps(dict(candidate.told)).encode(), passed)
                configuration = _file(self._packed(candidate), passed)
                libraries = _libraries(candidate.extensions, passed)
                order = {
                    "cpus": candidate.cpus,
                    "extensions": list(libraries) if zygote.isolated else [],
                    "extensions_at": str(candidate.extensions or ""),
                    "temporary_bytes": box.TEMPORARY_BYTES,
                }
                fds = [status, theirs.fileno(), configuration, words, page, buffers.inputs_fd, self._output]
                zygote.spawn(order, [*fds, commands, replies, *(libraries.values() if zygote.isolated else ())])
                theirs.close()
                self._meet(ours, resources)
            self.level = self._greet()
            self._resources = resources.pop_all()

    def ask(
        self, verb: Verb, *, calls: int = 0, first_set: int = 0, timeout_s: float
    ) -> tuple[protocol.Reply | RunFailure, int]:
        """Send a command and wait for its answer; also the controller's time for it, in ns.

        Each command carries a fresh random number, so an answer written before the command is told from a true one.
        """
        sequence = secrets.randbits(32)
        command = wire.COMMAND.pack(wire.MAGIC, verb, calls, first_set, sequence)
        answer, elapsed = self._exchange(command, timeout_s)
        if isinstance(answer, protocol.Reply) and answer.sequence != sequence:
            return self.end(ending.spoke()), elapsed
        return answer, elapsed

    def end(self, cause: RunFailure | None) -> RunFailure:
        """Kill it; without a known cause, find out why it ended.

        Raises:
            Retryable: it ended because the zygote, or its reaper, did.
        """
        status = None if cause else self._ended(END_TIMEOUT_S)
        self.kill()
        return cause or ending.classify(self.report(), status, self._buffers.layout)

    def report(self) -> protocol.Report:
        return protocol.report(self._page[: wire.REPORT_BYTES])

    def page(self) -> bytes:
        """The shared page as it is now; take it once, then look at it."""
        return self._page[:]

    def printed(self, most: int) -> str:
        """The beginning of what the kernel wrote to its standard output and error."""
        return os.pread(self._output, most, 0).decode("utf-8", "replace")

    def sealed(self) -> bool | None:
        """Whether every thread has the stricter filter; None where the kernel does not tell."""
        filters, base = self.observed.filters(), self._zygote.filters
        return None if filters is None or base is None else filters >= base + 2

    def interrupt(self) -> None:
        """Send the kill without waiting for its effect; for other threads."""
        self.observed.kill()

    def kill(self) -> None:
        """Kill it, and return when it and its reaper are gone."""
        self.observed.kill()
        self.observed.wait_gone()
        while select.select([self._status], [], [], END_TIMEOUT_S)[0] and os.read(self._status, 4):
            pass

    def close(self) -> None:
        self._resources.close()

    def _meet(self, link: socket.socket, resources: ExitStack) -> None:
        """Take the descriptor of the child's process, and give it what it needs to go on."""
        link.settimeout(START_TIMEOUT_S)
        try:
            _, given, _, _ = socket.recv_fds(link, 1, 1)
        except TimeoutError:
            given = []
        if not given:
            raise Fatal(f"a hosted candidate did not start: {self.printed(400).strip() or self._zygote.printed()}")
        watch = given[0]
        resources.callback(os.close, watch)
        self.observed = Observed(watch, nested=self._zygote.nested and self._zygote.profile.own_processes)
        resources.callback(self.kill)
        self.on_device = self._zygote.profile.device != CPU
        self.exporting = self.on_device and not self._kept
        if not self.exporting and not self._kept:
            try:
                self.memory = Memory(self.observed.pid)
            except PermissionError:
                self.exporting = True
            else:
                resources.callback(self.memory.close)
        socket.send_fds(link, [b"."], [self._buffers.outputs_fd] if self.exporting else [])

    def _greet(self) -> str:
        ready, _ = self._exchange(b"", START_TIMEOUT_S)
        if not isinstance(ready, protocol.Reply):
            raise Fatal(f"a hosted candidate did not start: {self.printed(400).strip() or ready}")
        level = machine_sandbox().level(ready.code, self._zygote.user)
        return level if self._zygote.nested or not self._zygote.isolated else f"shared-{level}"

    def _packed(self, candidate: Candidate) -> bytes:
        """What ``ke_prepare`` of ``hosted.cpp`` reads."""
        profile, isolated = self._zygote.profile, self._zygote.isolated
        extensions = [] if candidate.extensions is None else [box.as_mount(candidate.extensions)]
        seen = Box(
            mounts=(*box.mounts(profile), *extensions),
            temporary_bytes=box.TEMPORARY_BYTES if self._zygote.nested and isolated else 0,
            devices=(*box.DEVICES, *profile.devices),
            own_user=True,
        )
        on_gpu = profile.device != "cpu"
        loading, sealed = rules.filters_on_gpu() if on_gpu else rules.filters(processes=profile.processes)
        packed = machine_sandbox().confinement(seen, self._box_limits(candidate), loading) + text(sealed)
        return packed + protocol.counts(self._buffers, stained=candidate.stained) + protocol.places(self._buffers)

    def _box_limits(self, candidate: Candidate) -> Limits:
        memory = self._zygote.address_space + self._limits.memory_bytes + self._buffers.layout.span + SLACK_BYTES
        memory += (candidate.threads - 1) * THREAD_BYTES
        return Limits(
            address_space=memory if self._zygote.profile.address_space else UNLIMITED,
            cpu_s=self._limits.cpu_s,
            file_bytes=FILE_BYTES if self._zygote.profile.processes else OUTPUT_BYTES,
            processes=THREADS_MAX,
            open_files=GPU_FILES if self._zygote.profile.devices else FILES,
            stack_bytes=self._limits.stack_bytes,
        )

    def _ended(self, timeout_s: float) -> int | None:
        """The exit status (128 + signal when killed by one), or None when time is up."""
        if not select.select([self._status], [], [], timeout_s)[0]:
            return None
        data = os.read(self._status, 4)
        if len(data) != 4:
            raise Retryable(f"a hosted candidate was lost: {self._zygote.printed()}")
        code = os.waitstatus_to_exitcode(int.from_bytes(data, "little"))
        return code if code >= 0 else 128 - code

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


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """A pipe, each end closed with its stack."""
    read, write = os.pipe()
    reading.callback(os.close, read)
    writing.callback(os.close, write)
    return read, write


def _file(data: bytes, closing: ExitStack) -> int:
    """A memory file that holds ``data``, at its beginning."""
    fd = os.memfd_create("ke-order")
    closing.callback(os.close, fd)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _libraries(directory: Path | None, closing: ExitStack) -> dict[str, int]:
    """Descriptors of the files of ``directory`` by their names."""
    opened: dict[str, int] = {}
    for path in sorted(directory.iterdir()) if directory is not None else ():
        if path.is_file():
            opened[path.name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            closing.callback(os.close, opened[path.name])
    return opened
