"""Native kernels for x86-64: g++ in the build box, artefacts kept by content."""

from __future__ import annotations

import asyncio
import hashlib
import platform
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.program import ABI, cache_directory, compiler
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.toolchains import BuildFailed, Built, artefacts
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished, beyond_limits
from evaluator_svc.toolchains.first_error import first_error
from evaluator_svc.toolchains.flags import refused
from shared.errors import ChipError
from shared.events import Entry, Status
from shared.machine import processor

BASE_FLAGS = ("-std=c++17", "-shared", "-fPIC", "-save-temps=obj")
"""The temporary files hold the assembler text that the diagnosis reads: one compilation serves both."""
SOURCE_BYTES_MAX = 4 << 20
SOURCE = "kernel.cpp"
ASSEMBLY = f"{artefacts.NAME}-kernel.s"
"""As g++ names the temporary file of ``SOURCE``."""
_OUT_OF_MEMORY = re.compile(r"(?i)out of memory|memory exhausted|cannot allocate|bad_alloc|Killed signal")


@dataclass(kw_only=True)
class CpuToolchain:
    """g++ for the machine it runs on. ``directory`` holds the artefacts; the default is the user's cache."""

    limits: BuildLimits = field(default_factory=BuildLimits)
    directory: Path = field(default_factory=lambda: cache_directory() / "builds")

    def check(self) -> ChipError | None:
        try:
            compiler()
        except ChipError as error:
            return error
        return None

    def versions(self) -> tuple[Entry, ...]:
        return (
            Entry(name="compiler", value=compiler_version()),
            Entry(name="processor", value=processor().model or platform.machine()),
        )

    async def build(self, source: str, flags: Sequence[str], *, language: str = "cpp") -> Built | BuildFailed:
        """Compile and link one translation unit of C++.

        Raises:
            ChipError: no compiler.
            Fatal: no box could be started.
        """
        assert language == "cpp", language
        problem = _unacceptable(source, flags)
        if problem is not None:
            return problem
        kept = self.directory / _key(source, flags)
        found = await asyncio.to_thread(artefacts.find, kept)
        if found is not None:
            return found
        begin = time.monotonic_ns()
        with Scratch(BUILD) as work:
            done = await self._compile(work.path, source, [*flags, "-o", f"{{work}}/{artefacts.NAME}"])
            took = time.monotonic_ns() - begin
            if done.status != 0:
                return beyond_limits(done, self.limits, took) or _failed(done, took, self.limits)
            try:
                data = artefacts.library(work.path / artefacts.NAME)
            except artefacts.RefusedArtefact as error:
                return _rejected(str(error), Layer.BUILD, log=done.log, build_ns=took, sandbox=done.sandbox)
            assembly = _assembly(work.path)
        return artefacts.keep(kept, data, assembly=assembly, log=done.log, build_ns=took, sandbox=done.sandbox)

    async def _compile(self, work: Path, source: str, arguments: Sequence[str]) -> Finished:
        (work / SOURCE).write_text(source, encoding="utf-8")
        box = BuildBox(work=work, limits=self.limits)
        command = [*BASE_FLAGS, "-I{abi}", *arguments, f"{{work}}/{SOURCE}"]
        return await box.attended(command)


@cache
def compiler_version() -> str:
    """First line of ``g++ --version``."""
    done = subprocess.run([str(compiler()), "--version"], capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.splitlines()[0]


def _assembly(work: Path) -> bytes:
    """The assembler text that the build left; empty when what is there is no such file."""
    try:
        return artefacts.collect(work / ASSEMBLY)
    except artefacts.RefusedArtefact:
        return b""


def _key(source: str, flags: Sequence[str]) -> str:
    machine = processor()  # what ``-march=native`` means here
    identity = (compiler_version(), machine.model, " ".join(sorted(machine.flags)), (ABI / "ke_abi.h").read_text())
    parts = (source, *BASE_FLAGS, *flags, *identity)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _unacceptable(source: str, flags: Sequence[str]) -> BuildFailed | None:
    bad = refused(flags)
    if bad is not None:
        return _rejected(f"flag {bad!r} is not allowed", Layer.STATIC)
    if len(source.encode()) > SOURCE_BYTES_MAX:
        return _rejected(f"source is larger than {SOURCE_BYTES_MAX >> 20} MiB", Layer.STATIC)
    return None


def _rejected(why: str, layer: Layer, *, log: str = "", build_ns: int = 0, sandbox: str = "") -> BuildFailed:
    evidence = (caught(layer), Entry(name="first_error", value=why))
    return BuildFailed(status=Status.COMPILE_ERROR, evidence=evidence, log=log, build_ns=build_ns, sandbox=sandbox)


def _failed(done: Finished, build_ns: int, limits: BuildLimits) -> BuildFailed:
    def failed(status: Status, name: str, value: str) -> BuildFailed:
        layer = Layer.BUILD if status is Status.COMPILE_ERROR else Layer.LIMITS
        evidence = (caught(layer), Entry(name=name, value=value))
        return BuildFailed(status=status, evidence=evidence, log=done.log, build_ns=build_ns, sandbox=done.sandbox)

    if _OUT_OF_MEMORY.search(done.log):
        return failed(Status.OUT_OF_MEMORY, "build", f"took more than {limits.memory_bytes >> 20} MiB")
    first = first_error(done.log, f"g++ ended with status {done.status}")
    return failed(Status.COMPILE_ERROR, "first_error", first)
