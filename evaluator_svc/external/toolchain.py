"""Kernels built by a vendor's command; artefacts are kept by everything that goes into them."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_svc.external import contract
from evaluator_svc.external.command import VendorCommand
from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.program import cache_directory
from evaluator_svc.toolchains import BuildFailed, Built, artefacts
from shared import chips
from shared.chips import ChipSheet
from shared.chips.external import External
from shared.errors import ChipError
from shared.events import Entry, Status

SOURCE_BYTES_MAX, HASHED_BYTES_MAX = 4 << 20, 1 << 20
ABSENT = "name its three commands in a sheet of your own: docs/chips.md"


def tools_of(sheet: ChipSheet) -> External:
    """The sheet's table of commands.

    Raises:
        ChipError: it has none.
    """
    if sheet.external is None:
        raise ChipError(f"chip `{sheet.id}` has no adapter", hint=ABSENT)
    return sheet.external


@dataclass(kw_only=True)
class ExternalToolchain:
    """The commands of ``sheet``. ``directory`` holds the artefacts; the default is the user's cache."""

    sheet: ChipSheet
    directory: Path = field(default_factory=lambda: cache_directory() / "external")

    def check(self) -> ChipError | None:
        try:
            tools_of(self.sheet)
        except ChipError as error:
            return error
        for tool, how in chips.missing_tools(self.sheet).items():
            return ChipError(f"chip `{self.sheet.id}` needs {tool}, which is not on PATH", hint=how)
        return None

    def versions(self) -> tuple[Entry, ...]:
        return (
            Entry(name="adapter", value=f"{self.sheet.id} {tools_of(self.sheet).version}"),
            Entry(name="adapter_digest", value=digest(tools_of(self.sheet))[:16]),
        )

    async def build(self, source: str, flags: Sequence[str], *, language: str = "") -> Built | BuildFailed:
        """Have the vendor's tool build ``source``.

        Raises:
            ChipError: the adapter broke the contract.
            Fatal: no box could be started.
        """
        tools = tools_of(self.sheet)
        refused = _unacceptable(tools, source, tuple(flags), language)
        if refused:
            return _failed(Status.COMPILE_ERROR, Layer.STATIC, "first_error", refused)
        kept = self.directory / self._key(source, flags, language)
        found = await asyncio.to_thread(artefacts.find, kept)
        if found is not None:
            return _external(found, language)
        suffix = tools.suffixes[language]
        request = contract.build_request(chip=self.sheet.id, language=language, flags=flags, suffix=suffix)
        command = VendorCommand(tools, "build", self.sheet.id)
        answers: list[contract.BuildAnswer] = []

        def expected(result: bytes) -> Mapping[str, int | None]:
            answers.append(contract.read_build(result))
            return {} if answers[0].error else {contract.ARTEFACT: None}

        begin = time.monotonic_ns()
        given = {f"{contract.SOURCE}{suffix}": source.encode()}
        running = asyncio.ensure_future(asyncio.to_thread(command.run, request, given, expected))
        try:
            did = await asyncio.shield(running)
        except asyncio.CancelledError:
            command.interrupt()
            await asyncio.wait([running])
            raise
        took = time.monotonic_ns() - begin
        if did.timed_out or did.excess:
            status = Status.OUT_OF_MEMORY if "memory" in did.excess else Status.TIMEOUT
            said = did.excess or f"longer than {tools.build.time_s:g} s"
            return _failed(status, Layer.LIMITS, "build", f"took {said}", did.log, took, did.sandbox)
        if answers[0].error:
            said = answers[0].error
            log = did.log or said
            return _failed(Status.COMPILE_ERROR, Layer.BUILD, "first_error", said, log, took, did.sandbox)
        data = did.files[contract.ARTEFACT]
        made = artefacts.keep(kept, data, assembly=b"", log=did.log, build_ns=took, sandbox=did.sandbox)
        return _external(made, language)

    def _key(self, source: str, flags: Sequence[str], language: str) -> str:
        parts = (source, *flags, language, self.sheet.id, digest(tools_of(self.sheet)))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def digest(tools: External) -> str:
    """Of what the sheet says of the tools, and of the files that lie beside it: of large ones, name and size."""
    found = hashlib.sha256(repr((tools.version, tools.build, tools.run, tools.profile, tools.mounts)).encode())
    for path in sorted(tools.folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(tools.folder)}\0".encode())
            size = path.stat().st_size
            found.update(hashlib.sha256(path.read_bytes()).digest() if size <= HASHED_BYTES_MAX else b"%d" % size)
    return found.hexdigest()


def _external(made: Built, language: str) -> Built:
    return Built(
        path=made.path,
        digest=made.digest,
        log=made.log,
        build_ns=made.build_ns,
        sandbox=made.sandbox,
        host="external",
        language=language,
    )


def _unacceptable(tools: External, source: str, flags: tuple[str, ...], language: str) -> str:
    """Why nothing is built; empty for nothing."""
    if language not in tools.suffixes:
        return f"language `{language}`: this chip takes {', '.join(tools.suffixes)}"
    bad = tools.refused(flags)
    if bad is not None:
        return f"flag {bad!r} is not allowed"
    return f"source is larger than {SOURCE_BYTES_MAX >> 20} MiB" if len(source.encode()) > SOURCE_BYTES_MAX else ""


def _failed(
    status: Status, layer: Layer, name: str, value: str, log: str = "", build_ns: int = 0, sandbox: str = ""
) -> BuildFailed:
    evidence = (caught(layer), Entry(name=name, value=value))
    return BuildFailed(status=status, evidence=evidence, log=log, build_ns=build_ns, sandbox=sandbox)
