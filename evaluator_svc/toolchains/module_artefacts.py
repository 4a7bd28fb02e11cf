"""Artefacts of hosted kernels: the module's text and its extensions, kept by what they were built from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluator_svc.sandbox import NOTHING_BUILT
from evaluator_svc.toolchains import Built
from evaluator_svc.toolchains.artefacts import RECORD, settle
from shared.events import Entry

NAME, EXTENSIONS = "kernel.py", "extensions"


def keep(
    directory: Path,
    source: str,
    libraries: Mapping[str, bytes],
    *,
    language: str,
    static: tuple[Entry, ...],
    log: str = "",
    build_ns: int = 0,
    sandbox: str = "",
) -> Built:
    """Put an artefact into the cache directory of its key. The first of several equal builds wins."""
    files = {NAME: source.encode("utf-8", "replace"), **{f"{EXTENSIONS}/{k}": v for k, v in libraries.items()}}
    record = {
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "language": language,
        "static": [[one.name, one.value] for one in static],
        "log": log,
        "sandbox": sandbox,
    }
    settle(directory, files, record, find)
    return _built(directory, record, build_ns=build_ns)


def find(directory: Path) -> Built | None:
    """The kept artefact, or None when there is none or a file of it is not what it was."""
    try:
        record = json.loads((directory / RECORD).read_text())
        found = {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in record["files"]}
        present = {f"{EXTENSIONS}/{path.name}" for path in (directory / EXTENSIONS).glob("*")} | {NAME}
    except (OSError, ValueError, KeyError):
        return None
    return _built(directory, record, build_ns=0) if found == record["files"] and present == set(found) else None


def _built(directory: Path, record: Mapping[str, Any], *, build_ns: int) -> Built:
    libraries = sorted(name for name in record["files"] if name != NAME)
    static = [Entry(name=name, value=value) for name, value in record["static"]]
    if libraries:
        names = ", ".join(dict.fromkeys(name.split(".")[-2] for name in libraries))
        static.append(Entry(name="extensions", value=names))
    return Built(
        path=directory / NAME,
        digest=record["files"][NAME],
        log=record["log"],
        build_ns=build_ns,
        sandbox=record["sandbox"] if libraries else NOTHING_BUILT,
        host="hosted",
        language=record["language"],
        extensions=directory / EXTENSIONS if libraries else None,
        static=tuple(static),
    )
