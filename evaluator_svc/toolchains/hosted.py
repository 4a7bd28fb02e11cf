"""Python-hosted kernels: the form of the module, and its extensions compiled in the build box.

A module that builds no extension needs no build: its text is kept by content and that is the artefact. One that does is
run in the build box, where it finds a compiler and writes to memory only; what it hands out are shared libraries.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evaluator_svc.layers import Layer, caught
from evaluator_svc.runner.program import cache_directory
from evaluator_svc.scratch import BUILD, Scratch
from evaluator_svc.toolchains import BuildFailed, Built, module_artefacts, module_form
from evaluator_svc.toolchains.build_box import BuildLimits, Finished, beyond_limits
from evaluator_svc.toolchains.extension_box import PROGRAM_FILES, ExtensionBox
from shared.child_environment import without_secrets
from shared.errors import ChipError
from shared.events import Entry, Status

LANGUAGES = ("python", "triton")
FORM_TIMEOUT_S = 20.0
FORM_UNREADABLE = "the text cannot be read within the limits of time and memory"
LIMITS = BuildLimits(time_s=300.0, memory_bytes=12 << 30, file_bytes=128 << 20, processes=64)
"""A compiler with torch's headers takes 1.5 GB and 30 s on an idle core, nvcc twice that; the program itself maps
all of torch."""


@dataclass(kw_only=True)
class HostedToolchain:
    """Modules for the hosted runner. ``directory`` holds the artefacts; the default is the user's cache.

    ``architecture`` is a CUDA architecture, e.g. ``9.0a``, or empty on a chip without one.
    """

    limits: BuildLimits = LIMITS
    directory: Path = field(default_factory=lambda: cache_directory() / "modules")
    architecture: str = ""

    def check(self) -> ChipError | None:
        return None if _version("torch") else ChipError("torch is not installed", where="toolchain", hint="make setup")

    def versions(self) -> tuple[Entry, ...]:
        known = {"python": sys.version.split()[0], "triton": _version("triton")}
        return tuple(Entry(name=name, value=value) for name, value in known.items() if value)

    async def build(self, source: str, flags: Sequence[str], *, language: str = "python") -> Built | BuildFailed:
        """Check the form; compile the extensions, if there are any.

        Raises:
            ChipError: extensions, and no compiler.
            Fatal: no box could be started.
        """
        if flags:
            return _refused(Layer.STATIC, f"flag {flags[0]!r}: a module sets the flags of its extensions itself")
        begin = time.monotonic_ns()
        kept = self.directory / self._key(source, language)
        found = await asyncio.to_thread(module_artefacts.find, kept)
        if found is not None:
            return found
        form = await asyncio.to_thread(read_form, source)
        if form.problem:
            return _refused(Layer.STATIC, form.problem)
        static = _static(form)
        if not builds_extensions(source, form):
            return module_artefacts.keep(kept, source, {}, language=language, static=static)
        return await self._extensions(kept, source, language, static, begin)

    async def _extensions(
        self, kept: Path, source: str, language: str, static: tuple[Entry, ...], begin: int
    ) -> Built | BuildFailed:
        with Scratch(BUILD) as work:
            box = ExtensionBox(work=work.path, limits=self.limits, architecture=self.architecture)
            running = asyncio.ensure_future(asyncio.to_thread(box.run, source))
            try:
                made = await asyncio.shield(running)
            except asyncio.CancelledError:
                box.interrupt()
                await asyncio.wait([running])
                raise
        took, done = time.monotonic_ns() - begin, made.finished
        if made.refused:
            return self._failed(made.refused, done, took)
        return module_artefacts.keep(
            kept,
            source,
            made.libraries,
            language=language,
            static=static,
            log=done.log,
            build_ns=took,
            sandbox=done.sandbox,
        )

    def _failed(self, why: str, done: Finished, build_ns: int) -> BuildFailed:
        refused = BuildFailed(
            status=Status.COMPILE_ERROR,
            evidence=(caught(Layer.BUILD), Entry(name="first_error", value=why)),
            log=done.log,
            build_ns=build_ns,
            sandbox=done.sandbox,
        )
        return beyond_limits(done, self.limits, build_ns) or refused

    def _key(self, source: str, language: str) -> str:
        identity = (_version("torch"), _version("triton"), sys.version, self.architecture, _program_digest())
        return hashlib.sha256("\0".join((source, language, *identity)).encode("utf-8", "replace")).hexdigest()


def read_form(source: str) -> module_form.Form:
    """The form of a text, found out by a child program under limits.

    Raises:
        OSError: the child could not be started.
    """
    command = [sys.executable, "-I", "-S", module_form.__file__]
    text = source.encode("utf-8", "replace")
    try:
        # In a session of its own: a terminal's Ctrl-C is no fault of the text.
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            timeout=FORM_TIMEOUT_S,
            check=False,
            env=without_secrets(os.environ),
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return module_form.Form(problem=FORM_UNREADABLE)
    if done.returncode != 0:
        return module_form.Form(problem=FORM_UNREADABLE)
    return module_form.Form(**json.loads(done.stdout))


def builds_extensions(source: str, form: module_form.Form) -> bool:
    """Whether the build box is needed. A name put together at run time is not seen: such a module finds no library."""
    return form.extensions > 0 or "cpp_extension" in source or "load_inline" in source


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def _program_digest() -> str:
    files = (Path(module_form.__file__), *PROGRAM_FILES)
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _static(form: module_form.Form) -> tuple[Entry, ...]:
    told = {"features": ", ".join(form.features), "kernels": ", ".join(form.kernels)}
    return tuple(Entry(name=name, value=value) for name, value in told.items() if value)


def _refused(layer: Layer, why: str) -> BuildFailed:
    evidence = (caught(layer), Entry(name="first_error", value=why))
    return BuildFailed(status=Status.COMPILE_ERROR, evidence=evidence)
