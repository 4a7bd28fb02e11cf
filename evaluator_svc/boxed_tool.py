"""A tool that starts the program it looks at, around calls of one kernel, in one box with it.

No network but the box's own, nothing of the host to write but one folder, limits on time, memory and processes. The two
talk to each other in there, so what the tool reports is in the kernel's reach. The box holds no capability.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator_svc import syscalls
from evaluator_svc.arrays import flat, on_host
from evaluator_svc.external.command import regular
from evaluator_svc.external.contract import Breach
from evaluator_svc.hosted import box
from evaluator_svc.hosted.box import Profile
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.sandbox import UNLIMITED, Mount
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.signature import Signature
from evaluator_svc.tensors import TensorSpec
from evaluator_svc.toolchains import Built, build_box
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished
from shared import python_home
from shared.boxes import TEMPORARY

DRIVER = Path("evaluator_svc/hosted/one_call.py")
REQUEST = "call.json"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the box's own
"""By which processes of the box may talk."""
REPORT_BYTES_MAX = 8 << 20
FILE_BYTES = 1 << 30
"""Of what a tool keeps beside the device while it repeats a launch."""
MEMORY_BYTES = 32 << 30
"""Of the host, for inputs, what the tool saves and a compiler."""
PROCESSES, FILES = 512, 1024
LOG_SHOWN = 200
NO_BOX = "this machine has no namespaces to put the tool and the kernel in"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the tool wrote to its report, and how it ended. ``missing``: why there is no report, else empty."""

    text: str
    missing: str
    done: Finished

    def refused(self, complaint: str, time_s: float) -> str:
        """One line of why the report is none; ``complaint`` is the tool's own word for it, if it had one."""
        log = " ".join(self.done.log.split())[-LOG_SHOWN:]
        printed = "".join(c if c.isprintable() else " " for c in log)
        said = f"printed {printed!r}, not believed" if printed else "nothing printed"
        why = complaint or self.missing or "the report says nothing"
        if self.done.status is None:
            why = f"it took {self.done.excess or f'longer than {time_s:g} s'}"
        return f"{why} (status {self.done.status}; {said})"


@dataclass(slots=True, kw_only=True)
class BoxedTool:
    """``run`` blocks for some seconds; ``interrupt`` may be called from another thread.

    ``tool``: where the program is. ``profile``: what its process finds in its box. ``report``: the file it writes.
    ``environment``: of the process besides.
    """

    tool: Path
    time_s: float
    profile: Profile
    report: str
    environment: Mapping[str, str] = field(default_factory=dict)
    _box: BuildBox | None = field(default=None, init=False)

    @property
    def report_option(self) -> str:
        """The report as the tool is to be told of it, wherever the box has its folder."""
        return f"{{work}}/{self.report}"

    def run(self, subject: Subject, options: Sequence[str]) -> Told | None:
        """One start of the tool with ``options``; None where there is no box.

        Raises:
            ChipError: there is no compiler for the project's own programs.
            Fatal: the box did not start.
            OSError: the folder could not be written.
        """
        if not machine_sandbox().isolated:
            return None
        with Scratch(BUILD) as scratch:
            self.write(scratch.path, subject)
            extensions = () if subject.built.extensions is None else (box.as_mount(subject.built.extensions),)
            self._box = self._boxed(scratch.path, extensions)
            done = self._box.run([*options, *self.program()])
            try:
                text = regular(scratch.path / self.report, self.report, None, REPORT_BYTES_MAX).decode(
                    "utf-8", "replace"
                )
            except Breach as breach:
                return Told(text="", missing=breach.what, done=done)
            return Told(text=text, missing="", done=done)

    def interrupt(self) -> None:
        if self._box is not None:
            self._box.interrupt()

    def program(self) -> list[str]:
        """What the tool starts."""
        return [str(python_home.program()), "-I", "-S", "-B", f"{box.CODE}/{DRIVER}", f"{{work}}/{REQUEST}"]

    def write(self, folder: Path, subject: Subject) -> None:
        """The request and the inputs, for ``one_call.py``."""
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
                **self.environment,
                **self.profile.environment,
            },
            watched=True,
            devices=(*box.DEVICES, *self.profile.devices),
            own_proc=True,
            filter=syscalls.profiler_filter(),
        )


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
