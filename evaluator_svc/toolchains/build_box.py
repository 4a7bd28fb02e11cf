"""One compiler run in a box: no network, the compiler's own directories read-only, one writable work directory."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc import syscalls
from evaluator_svc.runner.program import ABI, compiler, machine_sandbox
from evaluator_svc.sandbox import Box, Boxed, Limits, Mount
from shared.errors import Fatal

SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libexec", "/usr/include", "/etc/alternatives")
"""Where distributions keep a compiler, its headers, libraries and links; no home, nothing else of /etc."""
LINKS = (("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64"))
WORK, HEADERS = "/build", "/abi"
TEMPORARY_BYTES = 512 << 20
LOG_BYTES = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """Ceilings of one build: wall and processor time (s), address space per process and size per file (bytes)."""

    time_s: float = 60.0
    memory_bytes: int = 3 << 30
    file_bytes: int = 64 << 20
    processes: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """``status`` is the exit status, None when time was up. ``log`` is what the compiler printed, cut."""

    status: int | None
    log: str
    sandbox: str


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
    _boxed: Boxed | None = field(default=None, init=False)

    def run(self, arguments: Sequence[str]) -> Finished:
        """Run the program with ``{work}`` and ``{abi}`` in arguments and environment replaced by paths in the box."""
        sandbox = machine_sandbox()
        work = Mount(source=self.work, target=WORK, writable=True)
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
        )
        command = [str(self.program or compiler()), *(argument.format_map(places) for argument in arguments)]
        told, tell = os.pipe()
        output = os.memfd_create("ke-build-log")
        try:
            confinement = sandbox.confinement(box, self._limits(), syscalls.build_filter())
            try:
                configuration = confinement + struct.pack("<i", tell)
                self._boxed = sandbox.start("exec", configuration, command, box, fds=(tell,), output=output)
            finally:
                os.close(tell)
            status = self._boxed.wait(self.limits.time_s)
            self._boxed.kill()
            layers = os.read(told, 4)
            log = os.pread(output, LOG_BYTES, 0).decode("utf-8", "replace")
        finally:
            os.close(told)
            os.close(output)
        if len(layers) != 4:
            raise Fatal(f"the build box did not start: {log.strip() or status}")
        return Finished(status=status, log=log, sandbox=sandbox.level(struct.unpack("<I", layers)[0]))

    def interrupt(self) -> None:
        """End a build that nobody waits for any more."""
        if self._boxed is not None:
            self._boxed.signal()

    def _limits(self) -> Limits:
        return Limits(
            address_space=self.limits.memory_bytes,
            cpu_s=int(self.limits.time_s) + 1,
            file_bytes=self.limits.file_bytes,
            processes=self.limits.processes,
            open_files=256,
            stack_bytes=64 << 20,
        )


def _toolchain_paths() -> list[Path]:
    paths = [Path(path) for path in SYSTEM if Path(path).is_dir() and not Path(path).is_symlink()]
    paths += [Path(at) for _, at in LINKS if Path(at).is_dir() and not Path(at).is_symlink()]
    home = compiler().resolve().parent.parent
    return paths if home == Path("/usr") else [*paths, home]
