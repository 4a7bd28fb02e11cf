"""CUDA and HIP where the chip is missing: compiled for it, and built for a core under the emulator of blocks.

The chip's compiler tells what a kernel takes before anything is run; a kernel that declares more shared memory than a
block can have is refused here. What is run, and judged, is the same text under ``simt.h``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

from evaluator_svc.emulated.programs import version
from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.program import ABI, cache_directory, compiler
from evaluator_svc.sandbox import Mount
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.simt import assembly, programs
from evaluator_svc.simt.assembly import Device
from evaluator_svc.toolchains import BuildFailed, Built, artefacts, gpu_commands
from evaluator_svc.toolchains.build_box import BuildBox, BuildLimits, Finished, beyond_limits
from evaluator_svc.toolchains.cpu import SOURCE_BYTES_MAX, compiler_version
from evaluator_svc.toolchains.first_error import first_error
from evaluator_svc.toolchains.gpu_commands import CLANG, CUDA, HINT
from shared.chips import Gpu
from shared.errors import ChipError
from shared.events import Entry, Status
from shared.machine import processor

SOURCE, EMULATED_SOURCE, DEVICE, OBJECT, COUNTING = "kernel.cu", "kernel.cpp", "device.s", "counting.o", "counting.so"
ASSEMBLED, REPORT = "kernel.cubin", "device.json"


@dataclass(kw_only=True)
class GpuToolchain:
    """For ``gpu``. ``language`` is ``cuda`` or ``hip``. ``directory`` holds the artefacts."""

    gpu: Gpu
    language: str
    limits: BuildLimits = field(default_factory=BuildLimits)
    directory: Path = field(default_factory=lambda: cache_directory() / "builds")

    def check(self) -> ChipError | None:
        if shutil.which(CLANG) is None:
            return ChipError(f"language `{self.language}` needs {CLANG}, which is not on PATH", hint=HINT)
        if not self._backends().is_dir():
            return ChipError(f"language `{self.language}` needs the libraries that come with Triton", hint="make setup")
        return None

    def versions(self) -> tuple[Entry, ...]:
        return () if self.check() is not None else (Entry(name="device_compiler", value=version(CLANG)),)

    async def build(self, source: str, flags: Sequence[str], *, language: str = CUDA) -> Built | BuildFailed:
        """Compile one translation unit for the chip, then for the emulator, then for the emulator that counts.

        Raises:
            ChipError: a compiler is missing.
            Fatal: no box could be started.
        """
        assert language == self.language, language
        problem = self.check()
        if problem is not None:
            raise problem
        if flags:
            return _rejected(f"flag {flags[0]!r}: this language takes none", Layer.STATIC)
        if len(source.encode()) > SOURCE_BYTES_MAX:
            return _rejected(f"source is larger than {SOURCE_BYTES_MAX >> 20} MiB", Layer.STATIC)
        asked = gpu_commands.refused(source)
        if asked:
            return _rejected(asked, Layer.STATIC)
        kept = self.directory / self._key(source)
        found = await asyncio.to_thread(partial(_find, language=language), kept)
        return found if found is not None else await self._build(source, kept)

    async def _build(self, source: str, kept: Path) -> Built | BuildFailed:
        begin = time.monotonic_ns()
        with Scratch(BUILD) as work:
            for name in (SOURCE, EMULATED_SOURCE):
                (work.path / name).write_text(source, encoding="utf-8")
            (work.path / programs.HEADER.name).write_bytes(programs.HEADER.read_bytes())
            for name, counting in (("simt.o", False), ("count.o", True)):
                (work.path / name).write_bytes(programs.emulator(self.gpu.warp, counting=counting).read_bytes())
            devices = await self._device(work.path, begin)
            if isinstance(devices, BuildFailed):
                return devices
            done = devices[1]
            for arguments in self._emulated():
                done = await self._run(work.path, arguments)
                if done.status != 0:
                    return self._failed(done, begin)
            try:
                files = {name: artefacts.library(work.path / name) for name in (artefacts.NAME, COUNTING)}
                files |= {DEVICE: artefacts.collect(work.path / DEVICE), REPORT: _encoded(devices[0])}
            except artefacts.RefusedArtefact as error:
                return _rejected(str(error), Layer.BUILD, done, time.monotonic_ns() - begin)
        digest = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()
        record = {"digest": digest, "log": done.log, "sandbox": done.sandbox}
        find = partial(_find, language=self.language)
        await asyncio.to_thread(artefacts.settle, kept, files, record, find)
        return _built(kept, record, self.language, build_ns=time.monotonic_ns() - begin)

    async def _device(self, work: Path, begin: int) -> tuple[tuple[Device, ...], Finished] | BuildFailed:
        """What the chip's compiler makes of it."""
        library = "nvidia/lib/libdevice.10.bc" if self.language == CUDA else "amd/lib/ocml.bc"
        arguments = gpu_commands.device(self.language, self.gpu.name, str(self._backends() / library))
        command = (*arguments, "-I{abi}", f"{{work}}/{SOURCE}", "-o", f"{{work}}/{DEVICE}")
        done = await self._run(work, command, program=Path(shutil.which(CLANG) or CLANG))
        if done.status != 0:
            much = assembly.beyond_lds(done.log)
            return self._too_much(much, done, begin) if much else self._failed(done, begin)
        text = _left(work / DEVICE, done, begin)
        if isinstance(text, BuildFailed):
            return text
        if self.language != CUDA:
            return assembly.amd(text), done
        declared = self.gpu.shared_declared or self.gpu.shared_bytes
        for name, size in assembly.shared_of_ptx(text).items():
            if size > declared:
                much = f"{name} needs {size} bytes of shared memory a block, kernels can declare {declared}"
                return self._too_much(much, done, begin)
        assembler = "ptxas-blackwell" if self.gpu.name.startswith("sm_1") else "ptxas"
        program = self._backends() / "nvidia" / "bin" / assembler
        command = ("-v", f"-arch={self.gpu.name}", f"{{work}}/{DEVICE}", "-o", f"{{work}}/{ASSEMBLED}")
        done = await self._run(work, command, program=program)
        if done.status != 0:
            return self._failed(done, begin)
        assembled = _left(work / ASSEMBLED, done, begin)
        if isinstance(assembled, BuildFailed):
            return assembled
        return assembly.nvidia(text, done.log, self.gpu.threads_max), done

    def _emulated(self) -> tuple[tuple[str, ...], ...]:
        """Commands of g++ that build what is run, and what is run to be counted."""
        common = (f"-DKE_WARP={self.gpu.warp}", "-I{abi}", "-I{work}")
        source, output = f"{{work}}/{EMULATED_SOURCE}", f"{{work}}/{artefacts.NAME}"
        return (
            (*gpu_commands.EMULATED, "-shared", *common, source, "{work}/simt.o", "-o", output),
            (*gpu_commands.COUNTED, *common, source, "-o", f"{{work}}/{OBJECT}"),
            (*gpu_commands.LINKED, f"{{work}}/{OBJECT}", "{work}/count.o", "-o", f"{{work}}/{COUNTING}"),
        )

    async def _run(self, work: Path, arguments: Sequence[str], program: Path | None = None) -> Finished:
        backends = Mount(source=self._backends(), target=str(self._backends()))
        box = BuildBox(work=work, limits=self.limits, program=program, mounts=(backends,) if program else ())
        return await box.attended(arguments)

    def _backends(self) -> Path:
        found = find_spec("triton")
        return Path(found.origin).parent / "backends" if found is not None and found.origin else Path("/nonexistent")

    def _key(self, source: str) -> str:
        texts = [path.read_text() for path in (ABI / "ke_abi.h", ABI / "ke_gpu.h", programs.HEADER, programs.SOURCE)]
        machine = processor()  # what ``-march=native`` means here
        compilers = (version(CLANG), compiler_version(), str(compiler()), installed("triton"))
        identity = (self.language, self.gpu.name, *compilers, machine.model, " ".join(sorted(machine.flags)))
        device = gpu_commands.device(self.language, self.gpu.name, "")
        commands = (*device, str(self.gpu.shared_declared), *gpu_commands.COUNTED, *gpu_commands.LINKED)
        return hashlib.sha256("\0".join((source, *texts, *identity, *commands)).encode()).hexdigest()

    def _failed(self, done: Finished, begin: int) -> BuildFailed:
        took = time.monotonic_ns() - begin
        first = first_error(done.log, f"a compiler ended with status {done.status}")
        return beyond_limits(done, self.limits, took) or _rejected(first, Layer.BUILD, done, took)

    def _too_much(self, why: str, done: Finished, begin: int) -> BuildFailed:
        """More than a block can have: nothing is launched."""
        return BuildFailed(
            status=Status.LAUNCH_FAILED,
            evidence=(caught(Layer.LAUNCH), Entry(name="resources", value=f"{why} ({self.gpu.name})")),
            log=done.log,
            build_ns=time.monotonic_ns() - begin,
            sandbox=done.sandbox,
        )


def devices_of(report: Path) -> tuple[Device, ...]:
    """The kernels of a build's report."""
    return tuple(Device(**one) for one in json.loads(report.read_bytes()))


def _encoded(devices: tuple[Device, ...]) -> bytes:
    return json.dumps([asdict(one) for one in devices]).encode()


def _left(path: Path, done: Finished, begin: int) -> str | BuildFailed:
    """The text of what a compiler that ended well left behind, or that it left nothing."""
    try:
        return artefacts.collect(path).decode("utf-8", "replace")
    except artefacts.RefusedArtefact as error:
        return _rejected(str(error), Layer.BUILD, done, time.monotonic_ns() - begin)


def _find(directory: Path, *, language: str) -> Built | None:
    """The kept artefact, or None when there is none, it lacks a part, or its bytes are not what they were."""
    names = sorted((artefacts.NAME, COUNTING, DEVICE, REPORT))
    try:
        record = json.loads((directory / artefacts.RECORD).read_text())
        digest = hashlib.sha256(b"".join((directory / name).read_bytes() for name in names)).hexdigest()
        return _built(directory, record, language, build_ns=0) if digest == record["digest"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _built(directory: Path, record: dict[str, str], language: str, *, build_ns: int) -> Built:
    return Built(
        path=directory / artefacts.NAME,
        digest=record["digest"],
        log=record["log"],
        build_ns=build_ns,
        sandbox=record["sandbox"],
        assembly=directory / DEVICE,
        language=language,
        counting=directory / COUNTING,
        device=directory / REPORT,
    )


def _rejected(why: str, layer: Layer, done: Finished | None = None, build_ns: int = 0) -> BuildFailed:
    return BuildFailed(
        status=Status.COMPILE_ERROR,
        evidence=(caught(layer), Entry(name="first_error", value=why)),
        log=done.log if done else "",
        build_ns=build_ns,
        sandbox=done.sandbox if done else "",
    )
