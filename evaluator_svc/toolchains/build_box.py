"""One compiler run in a box: no network, the compiler's own directories read-only, one writable work directory."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from evaluator_svc import syscalls
from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.program import ABI, compiler, machine_sandbox
from evaluator_svc.sandbox import Box, Boxed, Limits, Mount
from evaluator_svc.toolchains import BuildFailed
from shared.errors import Fatal
from shared.events import Entry, Status

SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libexec", "/usr/include", "/etc/alternatives")
"""Where distributions keep a compiler, its headers, libraries and links; no home, nothing else of /etc."""
LINKS = (("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64"))
WORK, HEADERS = "/build", "/abi"
TEMPORARY_BYTES = 512 << 20
LOG_BYTES = 16 << 10
WATCH_S = 0.1
"""How often a watched box is counted: a fork bomb reaches some hundred processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """Ceilings of one build: wall and processor time (s), address space per process and size per file (bytes).

    ``address_space`` is for programs that reserve more than they use; then ``memory_bytes`` is of a watched box only.
    """

    time_s: float = 60.0
    memory_bytes: int = 3 << 30
    file_bytes: int = 64 << 20
    processes: int = 64
    open_files: int = 256
    address_space: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """``status`` is the exit status, None when time was up. ``log`` is what the compiler printed, cut."""

    status: int | None
    log: str
    sandbox: str
    excess: str = ""
    """Why the box was ended before its time: what it took too much of."""


def beyond_limits(done: Finished, limits: BuildLimits, build_ns: int) -> BuildFailed | None:
    """The verdict on a build that was ended before its time; None for one that ended by itself."""
    if done.status is not None:
        return None
    took = done.excess or f"longer than {limits.time_s:g} s"
    if done.excess:
        status = Status.OUT_OF_MEMORY if "memory" in done.excess else Status.COMPILE_ERROR
    else:
        status = Status.TIMEOUT
    evidence = (caught(Layer.LIMITS), Entry(name="build", value=f"took {took}"))
    return BuildFailed(status=status, evidence=evidence, log=done.log, build_ns=build_ns, sandbox=done.sandbox)


@dataclass(slots=True, kw_only=True)
class BuildBox:
    """Runs one compiler at a time. ``interrupt`` may be called from another thread than ``run``."""

    work: Path
    limits: BuildLimits
    program: Path | None = None
    """What is run; None for the compiler."""
    mounts: tuple[Mount, ...] = ()
    """What ``program`` needs besides the compiler's own directories."""
    environment: Mapping[str, str] = field(default_factory=dict)
    hands: tuple[int, ...] = ()
    """Descriptors that ``program`` inherits under their own numbers."""
    watched: bool = False
    """``program`` runs foreign code: processes and memory of the box as a whole are counted too. A limit on processes
    binds no user that is root on the host, and one on memory holds for each process alone."""
    read_only: bool = False
    """Nothing of the host can be written, ``work`` neither: what ``program`` writes is in memory and goes with it."""
    devices: tuple[Path, ...] = ()
    """Device nodes that ``program`` uses."""
    own_proc: bool = False
    """``program`` finds a /proc of the box, as the driver of a GPU needs."""
    filter: bytes | None = None
    """Which system calls it may make; None for a compiler's."""
    _boxed: Boxed | None = field(default=None, init=False)

    def run(self, arguments: Sequence[str]) -> Finished:
        """Run the program with ``{work}`` and ``{abi}`` in arguments and environment replaced by paths in the box."""
        sandbox = machine_sandbox()
        work = Mount(source=self.work, target=WORK, writable=not self.read_only)
        headers = Mount(source=ABI, target=HEADERS)
        places = {"work": sandbox.path(work), "abi": sandbox.path(headers)}
        system = (Mount(source=path, target=str(path)) for path in _toolchain_paths())
        box = Box(
            mounts=(*system, *self.mounts, headers, work),
            links=tuple((to, at) for to, at in LINKS if Path(at).is_symlink()),
            environment={
                "PATH": "/usr/bin",
                "LC_ALL": "C",
                "TMPDIR": sandbox.path(work),
                "CCACHE_DISABLE": "1",
                **{name: value.format_map(places) for name, value in self.environment.items()},
            },
            temporary_bytes=TEMPORARY_BYTES,
            devices=self.devices,
            processes=self.own_proc,
            own_user=True,
        )
        command = [str(self.program or compiler()), *(argument.format_map(places) for argument in arguments)]
        told, tell = os.pipe()
        output = os.memfd_create("ke-build-log")
        try:
            confinement = sandbox.confinement(box, self._limits(), self.filter or syscalls.build_filter())
            try:
                configuration = confinement + struct.pack("<i", tell)
                self._boxed = sandbox.start("exec", configuration, command, box, fds=(tell, *self.hands), output=output)
            finally:
                os.close(tell)
            status, excess = self._wait(self._boxed)
            self._boxed.kill()
            layers = os.read(told, 4)
            log = os.pread(output, LOG_BYTES, 0).decode("utf-8", "replace")
        finally:
            os.close(told)
            os.close(output)
        if len(layers) != 4:
            raise Fatal(f"the build box did not start: {log.strip() or status}")
        level = sandbox.level(struct.unpack("<I", layers)[0], self._boxed.user)
        return Finished(status=status, log=log, sandbox=level, excess=excess)

    async def attended(self, arguments: Sequence[str]) -> Finished:
        """``run`` on a thread; whoever stops waiting for it ends it, and it is gone then."""
        running = asyncio.ensure_future(asyncio.to_thread(self.run, arguments))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self.interrupt()
            await asyncio.wait([running])
            raise

    def interrupt(self) -> None:
        """End a build that nobody waits for any more."""
        if self._boxed is not None:
            self._boxed.signal()

    def _wait(self, boxed: Boxed) -> tuple[int | None, str]:
        """The exit status, and what the box took too much of."""
        if not self.watched and machine_sandbox().counts_processes:
            return boxed.wait(self.limits.time_s), ""
        deadline = time.monotonic() + self.limits.time_s
        while (left := deadline - time.monotonic()) > 0:
            status = boxed.wait(min(left, WATCH_S))
            if status is not None:
                return status, ""
            excess = _excess(boxed.inner_pid, self.limits)
            if excess:
                return None, excess
        return None, ""

    def _limits(self) -> Limits:
        return Limits(
            address_space=self.limits.address_space or self.limits.memory_bytes,
            cpu_s=int(self.limits.time_s) + 1,
            file_bytes=self.limits.file_bytes,
            processes=self.limits.processes,
            open_files=self.limits.open_files,
            stack_bytes=64 << 20,
        )


def _excess(first: int, limits: BuildLimits) -> str:
    """What the processes below ``first`` take too much of, empty for nothing."""
    count, resident = 0, 0
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(first).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                count += process.num_threads()  # as the limit would count, where it holds
                resident += process.memory_info().rss
    if count > limits.processes:
        return f"more than {limits.processes} processes"
    return f"more than {limits.memory_bytes >> 20} MiB of memory" if resident > limits.memory_bytes else ""


def _toolchain_paths() -> list[Path]:
    paths = [Path(path) for path in SYSTEM if Path(path).is_dir() and not Path(path).is_symlink()]
    paths += [Path(at) for _, at in LINKS if Path(at).is_dir() and not Path(at).is_symlink()]
    home = compiler().resolve().parent.parent
    return paths if home == Path("/usr") else [*paths, home]
