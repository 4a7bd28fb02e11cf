"""Artefacts of builds, kept by what they were built from; safe when several processes build the same thing at once."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evaluator_svc.toolchains import Built

ARTEFACT_BYTES_MAX = 64 << 20
NAME, ASSEMBLY = "kernel.so", "kernel.s"
RECORD = "built.json"


ELF_SHARED_OBJECT = struct.Struct("<4s3B9xHHI")
"""Of the header (System V ABI, gABI 4.1): magic, class, byte order, version of the identification; type, machine,
version."""
EXPECTED_ELF = (b"\x7fELF", 2, 1, 1, 3, 62, 1)
"""64 bits, little-endian, current; ET_DYN, EM_X86_64, current."""


class RefusedArtefact(ValueError):
    """What the build left behind is not a regular file of bounded size, or no shared library."""


def library(path: Path) -> bytes:
    """Read the shared library that an untrusted build produced.

    Raises:
        RefusedArtefact: as ``collect``, or it is no shared library for x86-64.
    """
    data = collect(path)
    if len(data) < ELF_SHARED_OBJECT.size or ELF_SHARED_OBJECT.unpack_from(data) != EXPECTED_ELF:
        raise RefusedArtefact("the build left no shared library for x86-64")
    return data


def collect(path: Path) -> bytes:
    """Read what an untrusted build produced, following no links. What is read is what is kept: never the path again.

    Raises:
        RefusedArtefact: missing, a link, not a regular file, empty, or larger than ``ARTEFACT_BYTES_MAX``.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RefusedArtefact(f"the build left no library: {error.strerror}") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or not 0 < found.st_size <= ARTEFACT_BYTES_MAX:
            raise RefusedArtefact(f"the build left no regular file of at most {ARTEFACT_BYTES_MAX >> 20} MiB")
        with os.fdopen(os.dup(fd), "rb") as file:
            return file.read(ARTEFACT_BYTES_MAX)
    finally:
        os.close(fd)


def keep(directory: Path, data: bytes, *, assembly: bytes, log: str, build_ns: int, sandbox: str) -> Built:
    """Put an artefact into the cache directory of its key. The first of several equal builds wins.

    ``assembly`` is its assembler text, empty for none.
    """
    record = {"digest": hashlib.sha256(data).hexdigest(), "log": log, "sandbox": sandbox}
    settle(directory, {NAME: data, **({ASSEMBLY: assembly} if assembly else {})}, record, find)
    return _built(directory, record, build_ns=build_ns)


def settle(
    directory: Path, files: Mapping[str, bytes], record: Mapping[str, Any], find: Callable[[Path], Built | None]
) -> None:
    """Have ``files`` and their ``record`` in ``directory``, all at once. Those of another process that was faster stay,
    but where ``find`` says that what is there is damaged.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".building-") as scratch:
        entry = Path(scratch) / "entry"
        for name, data in files.items():
            (entry / name).parent.mkdir(parents=True, exist_ok=True)
            (entry / name).write_bytes(data)
            (entry / name).chmod(0o444)
        (entry / RECORD).write_text(json.dumps(record))
        try:
            entry.rename(directory)
        except OSError:  # there is one already
            if find(directory) is None:
                directory.rename(Path(scratch) / "damaged")
                entry.rename(directory)


def find(directory: Path) -> Built | None:
    """The kept artefact, or None when there is none or its bytes are not what they were."""
    try:
        record = json.loads((directory / RECORD).read_text())
        digest = hashlib.sha256((directory / NAME).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
    if digest != record["digest"]:
        return None
    return _built(directory, record, build_ns=0)


def _built(directory: Path, record: dict[str, str], *, build_ns: int) -> Built:
    assembly = directory / ASSEMBLY
    return Built(
        path=directory / NAME,
        digest=record["digest"],
        log=record["log"],
        build_ns=build_ns,
        sandbox=record["sandbox"],
        assembly=assembly if assembly.exists() else None,
    )
