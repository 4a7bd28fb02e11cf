"""The port of toolchains: one adapter per chip family turns a kernel's source into something a runner can load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from shared.errors import ChipError
from shared.events import Entry, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A read-only artefact. ``digest`` is the SHA-256 of its bytes; ``build_ns`` is 0 when it came from the cache."""

    path: Path
    digest: str
    log: str
    build_ns: int
    sandbox: str
    """The level it was built under, also when it comes from the cache."""
    assembly: Path | None = None
    """The assembler text of the same compilation, for diagnosis; None where the toolchain left none."""
    host: Literal["native", "hosted", "emulated", "external"] = "native"
    """Which runner loads it: ``native`` takes a shared library with the C ABI, ``hosted`` a module of Python,
    ``emulated`` a static program of another architecture, ``external`` whatever a vendor's tool understands."""
    language: str = "cpp"
    extensions: Path | None = None
    """Of a hosted module: the directory of its prebuilt extensions; None when it builds none."""
    counting: Path | None = None
    """Of a GPU's kernel that is emulated: the library that tells what its first call moves."""
    device: Path | None = None
    """Likewise: what the chip's compiler said of its kernels."""
    static: tuple[Entry, ...] = ()
    """What the text alone tells (``features``, ``kernels``): advice, and one half of what the kernel audit needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFailed:
    """The candidate's fault, as data: COMPILE_ERROR, TIMEOUT or OUT_OF_MEMORY."""

    status: Status
    evidence: tuple[Entry, ...]
    log: str = ""
    build_ns: int = 0
    sandbox: str = ""


class Toolchain(Protocol):
    """Builds untrusted sources in a box. Safe to call concurrently; equal requests give equal artefacts."""

    def check(self) -> ChipError | None:
        """None when the toolchain is usable, else an error that says how to install it."""
        ...

    def versions(self) -> tuple[Entry, ...]:
        """What was built with, for the record of a result."""
        ...

    async def build(self, source: str, flags: Sequence[str], *, language: str = "cpp") -> Built | BuildFailed:
        """Compile and link. ``flags`` come from the candidate and are checked against an allow-list."""
        ...
