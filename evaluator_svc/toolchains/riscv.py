"""Kernels for RISC-V with vectors: clang in the build box, linked with the harness into one static program."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc.emulated.programs import CHIP, CLANG, HARNESS, LINKER, QEMU, tool, version
from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.program import ABI, cache_directory
from evaluator_svc.sandbox import Mount
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.toolchains import BuildFailed, Built, artefacts
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished, beyond_limits
from evaluator_svc.toolchains.first_error import first_error
from evaluator_svc.toolchains.flags import refused
from shared.errors import ChipError
from shared.events import Entry, Status

LANGUAGE = "c-rvv"
SOURCE, PROGRAM = "kernel.c", artefacts.NAME
SOURCE_BYTES_MAX = 4 << 20
CROSS = Path("/usr/riscv64-linux-gnu")
"""The cross C library of Debian."""
CROSS_HINT = "apt-get install libc6-dev-riscv64-cross libgcc-12-dev-riscv64-cross"
BASE_FLAGS = ("--target=riscv64-linux-gnu", "-march=rv64gcv", "-mabi=lp64d", "-std=gnu11")
LINK_FLAGS = (
    "-static", "-nostartfiles", "-fuse-ld=lld", "-Wl,-e,ke_start", "-Wl,--section-start=.ke_text=0x40000000",
    "-Wl,--no-relax",
)  # fmt: skip
"""The harness lies where ``counter.c`` looks for it; no start files: nothing of a kernel runs before its call."""
ELF_EXECUTABLE = (b"\x7fELF", 2, 1, 1, 2, 243, 1)
"""64 bits, little-endian, current; ET_EXEC, EM_RISCV, current."""
_REFUSED = re.compile(r"-mllvm|-fopenmp.*|-pthread|-l(gomp|pthread)|-m(no-)?relax")


@dataclass(kw_only=True)
class RiscvToolchain:
    """clang for RISC-V. ``directory`` holds the artefacts; the default is the user's cache."""

    limits: BuildLimits = field(default_factory=BuildLimits)
    directory: Path = field(default_factory=lambda: cache_directory() / "builds")

    def check(self) -> ChipError | None:
        try:
            for name in (CLANG, LINKER, QEMU):
                tool(name)
        except ChipError as error:
            return error
        if not CROSS.is_dir():
            return ChipError(f"the cross C library is not in {CROSS}", where=CHIP, hint=CROSS_HINT)
        return None

    def versions(self) -> tuple[Entry, ...]:
        return (Entry(name="compiler", value=version(CLANG)), Entry(name="emulator", value=version(QEMU)))

    async def build(self, source: str, flags: Sequence[str], *, language: str = LANGUAGE) -> Built | BuildFailed:
        """Compile and link one translation unit of C with the harness.

        Raises:
            ChipError: no compiler.
            Fatal: no box could be started.
        """
        assert language == LANGUAGE, language
        bad = next((flag for flag in flags if _REFUSED.fullmatch(flag)), None) or refused(flags)
        if bad is not None:
            return _rejected(f"flag {bad!r} is not allowed", Layer.STATIC)
        if len(source.encode()) > SOURCE_BYTES_MAX:
            return _rejected(f"source is larger than {SOURCE_BYTES_MAX >> 20} MiB", Layer.STATIC)
        kept = self.directory / _key(source, flags)
        found = await asyncio.to_thread(artefacts.find, kept)
        if found is None:
            return await self._build(source, flags, kept)
        return _emulated(found)

    async def _build(self, source: str, flags: Sequence[str], kept: Path) -> Built | BuildFailed:
        begin = time.monotonic_ns()
        with Scratch(BUILD) as work:
            done = await self._compile(work.path, source, flags)
            took = time.monotonic_ns() - begin
            if done.status != 0:
                return beyond_limits(done, self.limits, took) or _failed(done, took)
            try:
                data = artefacts.collect(work.path / PROGRAM)
            except artefacts.RefusedArtefact as error:
                return _rejected(str(error), Layer.BUILD, done, took)
            if (
                len(data) < artefacts.ELF_SHARED_OBJECT.size
                or artefacts.ELF_SHARED_OBJECT.unpack_from(data) != ELF_EXECUTABLE
            ):
                return _rejected("the build left no program for RISC-V", Layer.BUILD, done, took)
        return _emulated(artefacts.keep(kept, data, assembly=b"", log=done.log, build_ns=took, sandbox=done.sandbox))

    async def _compile(self, work: Path, source: str, flags: Sequence[str]) -> Finished:
        (work / SOURCE).write_text(source, encoding="utf-8")
        (work / HARNESS.name).write_bytes(HARNESS.read_bytes())
        cross = Mount(source=CROSS, target=str(CROSS))
        box = BuildBox(work=work, limits=self.limits, program=tool(CLANG), mounts=(cross,))
        sources = (f"{{work}}/{HARNESS.name}", f"{{work}}/{SOURCE}")
        command = [*BASE_FLAGS, "-I{abi}", *flags, *LINK_FLAGS, *sources, "-o", f"{{work}}/{PROGRAM}", "-lm"]
        return await box.attended(command)


def _emulated(built: Built) -> Built:
    """QEMU runs what may be executed only."""
    built.path.chmod(0o555)
    return Built(
        path=built.path, digest=built.digest, log=built.log, build_ns=built.build_ns, sandbox=built.sandbox,
        host="emulated", language=LANGUAGE,
    )  # fmt: skip


def _key(source: str, flags: Sequence[str]) -> str:
    texts = (version(CLANG), HARNESS.read_text(), (ABI / "ke_abi.h").read_text())
    return hashlib.sha256("\0".join((source, *BASE_FLAGS, *LINK_FLAGS, *flags, *texts)).encode()).hexdigest()


def _rejected(why: str, layer: Layer, done: Finished | None = None, build_ns: int = 0) -> BuildFailed:
    return BuildFailed(
        status=Status.COMPILE_ERROR,
        evidence=(caught(layer), Entry(name="first_error", value=why)),
        log=done.log if done else "",
        build_ns=build_ns,
        sandbox=done.sandbox if done else "",
    )


def _failed(done: Finished, build_ns: int) -> BuildFailed:
    first = first_error(done.log, f"clang ended with status {done.status}")
    return _rejected(first, Layer.BUILD, done, build_ns)
