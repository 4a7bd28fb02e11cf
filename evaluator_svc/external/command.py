"""One of a vendor's commands, run in a box on files of one private folder.

The commands are trusted by whoever runs the pool; the kernel that they run is not, so both are in the box: no network,
only the mounts that the sheet names, limits on time, memory, processes and files. What is read afterwards is read
without following links, when everything in the box is dead.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator_svc import syscalls
from evaluator_svc.external.contract import REQUEST, RESULT, RESULT_BYTES_MAX, Breach
from evaluator_svc.runner.program import machine_sandbox
from evaluator_svc.sandbox import Mount
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished
from shared.chips.external import SHEET, External
from shared.errors import ChipError

SHEET_AT = "/sheet"
PROCESSES = 64
LOG_SHOWN = 200
FILE_BYTES_MIN = 16 << 20
"""What any file may grow to, scratch files of the vendor's included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """``files`` are those asked for, by name. ``timed_out``: it was ended; then there are none."""

    log: str
    sandbox: str
    files: Mapping[str, bytes]
    timed_out: bool = False
    excess: str = ""
    """What it took too much of, so that it was ended."""


class VendorCommand:
    """``build``, ``run`` or ``profile`` of one sheet. Each ``run`` is a fresh box; ``interrupt`` ends the latest."""

    def __init__(self, sheet: External, name: str, chip: str) -> None:
        self._sheet, self._name, self._chip = sheet, name, chip
        self._command = {"build": sheet.build, "run": sheet.run, "profile": sheet.profile}[name]
        self._box: BuildBox | None = None

    @property
    def where(self) -> str:
        return f"chip {self._chip}, command `{self._name}`"

    def interrupt(self) -> None:
        if self._box is not None:
            self._box.interrupt()

    def run(
        self, request: dict[str, Any], given: Mapping[str, Any], expected: Callable[[bytes], Mapping[str, int | None]]
    ) -> Did:
        """Run it on ``request``, with the files ``given`` beside that.

        ``expected`` is given the text of the result and tells which files are to be read then, each with its size, or
        None for any up to the limit of artefacts; what it raises is passed on.

        Raises:
            ChipError: the adapter broke the contract: what it did, in which command, and how to mend it.
        """
        with Scratch(BUILD) as scratch:
            for name, data in given.items():
                (scratch.path / name).write_bytes(data)
            (scratch.path / REQUEST).write_text(json.dumps(request, indent=1))
            for path in scratch.path.iterdir():
                path.chmod(0o644)
            done = self._boxed(scratch.path, max((len(data) for data in given.values()), default=0))
            try:
                return self._read(scratch.path, done, expected)
            except Breach as breach:
                raise ChipError(breach.what, where=self.where, hint=breach.mend) from breach

    def _read(self, folder: Path, done: Finished, expected: Callable[[bytes], Mapping[str, int | None]]) -> Did:
        if done.status is None:
            late = not done.excess
            return Did(log=done.log, sandbox=done.sandbox, files={}, timed_out=late, excess=done.excess)
        self._within(folder)
        if done.status != 0:
            said = " ".join(done.log.split())[-LOG_SHOWN:]
            ended = f"signal {done.status - 128}" if done.status > 128 else f"status {done.status}"
            raise Breach(
                f"ended with {ended}: {said or 'it printed nothing'}",
                f'exit with 0, also for a bad kernel: that is a "status" in {RESULT}',
            )
        result = regular(folder / RESULT, RESULT, None, RESULT_BYTES_MAX)
        limit = self._sheet.artefact_mib << 20
        wanted = expected(result)
        return Did(
            log=done.log,
            sandbox=done.sandbox,
            files={name: regular(folder / name, name, size, limit) for name, size in wanted.items()},
        )

    def _within(self, folder: Path) -> None:
        """A file that met the limit says more than the error which the command made of it."""
        for path in sorted(folder.iterdir()):
            size = path.lstat().st_size
            if size >= self._file_bytes:
                raise Breach(
                    f"wrote more than {self._file_bytes >> 20} MiB into {path.name[:80]!r}",
                    "write less, or stop a loop",
                )

    def _boxed(self, work: Path, largest: int) -> Finished:
        self._file_bytes = max(FILE_BYTES_MIN, self._sheet.artefact_mib << 20, 2 * largest)
        sandbox = machine_sandbox()
        sheet = Mount(source=self._sheet.folder.resolve(), target=SHEET_AT)
        mounts = (sheet, *(Mount(source=Path(path), target=path) for path in self._sheet.mounts))
        words = [word.replace(SHEET, sandbox.path(sheet)) for word in self._command.command]
        if not Path(words[0].replace(sandbox.path(sheet), str(sheet.source))).exists():
            raise ChipError(f"there is no program {words[0]}", where=self.where, hint="mend the sheet, or install it")
        self._box = BuildBox(
            work=work,
            limits=BuildLimits(
                time_s=self._command.time_s,
                memory_bytes=self._command.memory_mib << 20,
                file_bytes=self._file_bytes,
                processes=PROCESSES,
            ),
            program=Path(words[0]),
            mounts=mounts,
            devices=tuple(Path(path) for path in self._sheet.devices),
            watched=True,
            filter=syscalls.build_filter(kills_itself=sandbox.isolated),
        )
        return self._box.run([*words[1:], f"{{work}}/{REQUEST}"])


def regular(path: Path, name: str, size: int | None, limit: int) -> bytes:
    """Read what a box left behind, following no link.

    Raises:
        Breach: it is missing, a link, no regular file, too large, or of another ``size``.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise Breach(f"wrote no {name}", "write it into the folder of the request") from error
    except OSError as error:
        linked = path.is_symlink()
        what = f"{name} is a link" if linked else f"{name} cannot be opened: {error.strerror}"
        raise Breach(what, "write a regular file: links are not followed") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Breach(f"{name} is no regular file", "write a regular file")
        if size is not None and found.st_size != size:
            raise Breach(f"{name} has {found.st_size} bytes, expected {size}", "write the whole tensor, and no more")
        if size is None and found.st_size > limit:
            raise Breach(f"{name} has {found.st_size} bytes, more than {limit >> 10} KiB", "write less")
        if size is None and not found.st_size:
            raise Breach(f"{name} is empty", "write it before the command ends")
        with os.fdopen(os.dup(fd), "rb") as file:
            return file.read(found.st_size)
    finally:
        os.close(fd)
