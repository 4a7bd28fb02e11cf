"""Nsight Compute around one call of a kernel, in a box.

The tool and the kernel are in one box, because the tool starts the program that it looks at and talks to a part of
itself in there: no network but the box's own, nothing of the host to write but one folder, limits on time, memory and
processes. So the report is in the kernel's reach, which is why it decides nothing. The box holds no capability, so
counters are read where the driver lets everybody (``NVreg_RestrictProfilingToAdminUsers=0``); else the tool says
``ERR_NVGPUCTRPERM``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator_svc import syscalls
from evaluator_svc.arrays import flat, on_host
from evaluator_svc.external.command import regular
from evaluator_svc.external.contract import Breach
from evaluator_svc.hosted import box, on_gpu
from evaluator_svc.hosted.box import Profile
from evaluator_svc.profilers import ncu_metrics, ncu_report
from evaluator_svc.profilers.ncu_report import KERNELS_MAX, Report
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.sandbox import UNLIMITED, Mount
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built, build_box
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished
from shared import python_home
from shared.boxes import TEMPORARY

PROGRAM = "ncu"
ABSENT = "ncu (Nsight Compute) is not on the path"
DRIVER = Path("evaluator_svc/hosted/one_call.py")
REQUEST, REPORT = "call.json", "report.csv"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the box's own
"""By which processes of the box may talk."""
REPORT_BYTES_MAX = 8 << 20
FILE_BYTES = 1 << 30
"""Of what the tool keeps beside the device while it repeats a launch."""
MEMORY_BYTES = 32 << 30
"""Of the host, for inputs, what the tool saves and a compiler."""
PROCESSES, FILES = 512, 1024
LOG_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is called: a hosted kernel on one case of its operator. ``mutates``: inputs that it changes in place."""

    built: Built
    inputs: Sequence[TensorSpec]
    values: Sequence[Any]
    """Of the inputs: anything with the buffer protocol."""
    signature: Signature
    mutates: tuple[int, ...] = ()
    threads: int = 1


@dataclass(slots=True, kw_only=True)
class Ncu:
    """One call, profiled once. ``interrupt`` may be called from another thread than ``run``.

    ``tool``: where the program is. ``profile``: what its process finds in its box.
    """

    tool: Path
    time_s: float
    profile: Profile
    text: str = field(default="", init=False)
    """What the tool wrote last, for a record."""
    _box: BuildBox | None = field(default=None, init=False)

    def run(self, subject: Subject) -> Report:
        """The launches of one call after three that warm it up; blocks for some seconds.

        Raises:
            ChipError: there is no compiler for the project's own programs.
            Fatal: the box did not start.
            OSError: the folder could not be written.
        """
        if not machine_sandbox().isolated:
            return Report(kernels=(), refused="this machine has no namespaces to put the profiler and the kernel in")
        with Scratch(BUILD) as scratch:
            self._write(scratch.path, subject)
            extensions = () if subject.built.extensions is None else (box.as_mount(subject.built.extensions),)
            self._box = self._boxed(scratch.path, extensions)
            done = self._box.run(self.arguments())
            return self._read(scratch.path, done)

    def interrupt(self) -> None:
        if self._box is not None:
            self._box.interrupt()

    def arguments(self) -> list[str]:
        """Of the tool. ``{work}`` is the folder, wherever the box has it.

        Caches are emptied before every launch, as before every timed call; clocks are left as they are, which the
        tool would else set to a base for everybody on the device.
        """
        options = [
            "--target-processes", "all",
            "--clock-control", "none",
            "--cache-control", "all",
            "--profile-from-start", "off",
            "--launch-count", str(KERNELS_MAX),
            "--metrics", ",".join(ncu_metrics.asked()),
            "--csv",
            "--page", "raw",
            "--print-units", "base",
            "--log-file", f"{{work}}/{REPORT}",
        ]  # fmt: skip
        return [*options, str(python_home.program()), "-I", "-S", "-B", f"{box.CODE}/{DRIVER}", f"{{work}}/{REQUEST}"]

    def _write(self, folder: Path, subject: Subject) -> None:
        told = {
            "text": subject.built.path.read_text(encoding="utf-8"),
            "signature": subject.signature.plain(),
            "device": self.profile.device,
            "threads": subject.threads,
            "inputs": [[list(spec.shape), spec.dtype.value] for spec in subject.inputs],
            "mutates": list(subject.mutates),
            "extensions": str(subject.built.extensions or ""),
            "paths": [box.CODE, *python_home.packages()],
        }
        for index, data in enumerate(subject.values):
            (folder / f"input-{index}").write_bytes(on_host(flat(data)).data)
        (folder / REQUEST).write_text(json.dumps(told))
        for path in folder.iterdir():
            path.chmod(0o644)
        (folder / SHARED_MEMORY.name).mkdir()

    def _boxed(self, folder: Path, extensions: tuple[Mount, ...]) -> BuildBox:
        code = Mount(source=box.HERE, target=f"{box.CODE}/evaluator_svc/hosted")
        shared = Mount(source=folder / SHARED_MEMORY.name, target=str(SHARED_MEMORY), writable=True)
        mounts = (
            *python_home.mounts(),
            code,
            shared,
            *self.profile.mounts,
            *_system(),
            *_homes(self.tool),
            *extensions,
        )
        return BuildBox(
            work=folder,
            limits=BuildLimits(
                time_s=self.time_s,
                memory_bytes=MEMORY_BYTES,
                address_space=UNLIMITED,  # a driver reserves many addresses
                file_bytes=FILE_BYTES,
                processes=PROCESSES,
                open_files=FILES,
            ),
            program=self.tool,
            mounts=_shown(mounts),
            environment={
                "HOME": TEMPORARY,
                "TMPDIR": TEMPORARY,
                "TRITON_CACHE_DIR": f"{TEMPORARY}/triton",
                **self.profile.environment,
            },
            watched=True,
            devices=(*box.DEVICES, *self.profile.devices),
            own_proc=True,
            filter=syscalls.profiler_filter(),
        )

    def _read(self, folder: Path, done: Finished) -> Report:
        self.text, missing = "", ""
        try:
            self.text = regular(folder / REPORT, REPORT, None, REPORT_BYTES_MAX).decode("utf-8", "replace")
        except Breach as breach:
            missing = breach.what
        report = ncu_report.parse(self.text)
        if report.kernels and done.status == 0:
            return report
        printed = "".join(c if c.isprintable() else " " for c in " ".join(done.log.split())[-LOG_SHOWN:])
        said = f"printed {printed!r}, not believed" if printed else "nothing printed"
        why = ncu_report.complaint(self.text) or ncu_report.complaint(done.log) or missing or "no launch in the report"
        if done.status is None:
            why = f"it took {done.excess or f'longer than {self.time_s:g} s'}"
        return Report(kernels=(), refused=f"{why} (status {done.status}; {said})")


def found() -> Path | None:
    """Where the program is; None without one."""
    path = shutil.which(PROGRAM)
    return Path(path) if path else None


def gpu_profile() -> Profile:
    """What the process finds in its box on the one GPU that there is."""
    return on_gpu.profile()


def _shown(mounts: Sequence[Mount]) -> tuple[Mount, ...]:
    """Those that show what no directory around them shows anyway: nothing can be mounted in what is read-only."""
    whole = [Path(path) for path in build_box.SYSTEM if Path(path).exists()]
    whole += [mount.source for mount in mounts if str(mount.source) == mount.target]
    return tuple(
        mount
        for mount in dict.fromkeys(mounts)
        if mount.target not in build_box.SYSTEM
        and not (str(mount.source) == mount.target and any(folder in mount.source.parents for folder in whole))
    )


def _system() -> tuple[Mount, ...]:
    """How libraries are found, and where a build's own directories do not have them."""
    return tuple(Mount(source=path, target=str(path)) for path in (Path("/etc/ld.so.cache"),) if path.exists())


def _homes(tool: Path) -> tuple[Mount, ...]:
    """Where the program lies, and what its name leads to: links, and scripts that look beside themselves."""
    folders = [tool.parent, tool.resolve().parent]
    whole = [f.parent if f.name == "bin" and f.parent not in python_home.SHARED else f for f in folders]
    return tuple(box.as_mount(folder) for folder in dict.fromkeys(whole) if folder != Path("/"))
