"""A run directory: everything one search leaves behind, and the rules for making and opening one.

::

    runs/20260131-120000-softmax/
      run.json        what was asked: the SearchStarted event, the operator's path, the version
      search.db       journal, documents and blobs (SQLite)
      search.kelog    the finished search as one self-contained file
      result.json     the final object, as ``--json`` prints it
      report.html     the story, with pictures
      kernel/         the winner, ready to use
      run.log         what the services had to say

The directory of searches for several chips holds one of these for each, under the chip's id (``cli/campaign.py``).
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from shared import wire
from shared.errors import LogError, Poison, UserError
from shared.events import Envelope, SearchStarted

FORMAT = 1
LATEST = "latest"
CAMPAIGN = "campaign.json"
"""In the directory of searches for several chips: what was asked."""
DEFAULT_ROOT = Path("runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """Paths of one run."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "run.json"

    @property
    def database(self) -> Path:
        return self.path / "search.db"

    @property
    def log(self) -> Path:
        return self.path / "search.kelog"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def kernel(self) -> Path:
        return self.path / "kernel"

    @property
    def messages(self) -> Path:
        return self.path / "run.log"

    @property
    def store_url(self) -> str:
        return f"sqlite:{self.database}"


def create(out: Path | None, operator: str) -> RunDirectory:
    """Make a new, empty run directory: ``out``, or ``runs/<time>-<operator>``.

    Raises:
        UserError: the directory cannot be written, or already holds something.
    """
    path = out or DEFAULT_ROOT / f"{time.strftime('%Y%m%d-%H%M%S')}-{operator}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise UserError(
                "is not empty", where=str(path), hint="choose another --out, or continue it with `kernelevolve resume`"
            )
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"cannot write there: {error.strerror}", where=str(path), hint="choose a directory you may write with --out"
        ) from error
    return RunDirectory(path=path)


def discard(run: RunDirectory) -> None:
    """Remove a directory in which no search began, and the default root when nothing else is in it."""
    shutil.rmtree(run.path)
    root = run.path.parent
    if root == DEFAULT_ROOT and not any(root.iterdir()):
        root.rmdir()


def point_latest_at(run: RunDirectory) -> None:
    """Let ``runs/latest`` mean ``run``; a run kept elsewhere with --out leaves it alone."""
    path = run.path
    if path.parent != DEFAULT_ROOT:
        return
    link = path.parent / LATEST
    fresh = path.parent / f".{LATEST}.{os.getpid()}"
    fresh.symlink_to(path.name)
    fresh.replace(link)


def open_existing(path: Path) -> RunDirectory:
    """A run directory made earlier.

    Raises:
        LogError: there is none at ``path``.
    """
    run = RunDirectory(path=path)
    if (path / CAMPAIGN).is_file():
        inside = ", ".join(sorted(str(found.parent) for found in path.glob("*/run.json")))
        raise LogError("holds a run for each chip", where=str(path), hint=f"give one of them: {inside}")
    if not run.manifest.is_file():
        raise LogError("is not a run directory (no run.json)", where=str(path), hint="give the run_dir of an optimize")
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What was asked. ``stream`` names the journal: the search's id, or, of a fork, the fork's. ``schedules`` are the
    texts of other chips' schedules that it begins from.
    """

    started: SearchStarted
    stream: str
    operator_path: Path
    schedules: tuple[str, ...] = ()


def write_manifest(
    run: RunDirectory, started: Envelope, operator_path: Path, *, stream: str, schedules: tuple[str, ...] = ()
) -> None:
    """Record what was asked, whole or not at all."""
    body = {
        "format": FORMAT,
        "stream": stream,
        "operator_path": str(operator_path.resolve()),
        "started": wire.to_json(started),
    }
    if schedules:
        body["schedules"] = list(schedules)
    write_whole(run.manifest, json.dumps(body, indent=1))


def read_manifest(run: RunDirectory) -> Manifest:
    """What was asked of the run.

    Raises:
        LogError: the manifest is corrupt or of another format.
    """
    try:
        body = json.loads(run.manifest.read_text(encoding="utf-8"))
        if body["format"] != FORMAT:
            raise LogError(f"has format {body['format']}, this version reads {FORMAT}", where=str(run.manifest))
        started = wire.from_json(body["started"]).event
        stream, operator_path = str(body["stream"]), Path(body["operator_path"])
        schedules = tuple(str(text) for text in body.get("schedules", ()))
    except (OSError, ValueError, KeyError, TypeError, Poison) as error:
        raise LogError(f"is corrupt: {error}", where=str(run.manifest)) from error
    if not isinstance(started, SearchStarted):
        raise LogError("does not begin with SearchStarted", where=str(run.manifest))
    return Manifest(started=started, stream=stream, operator_path=operator_path, schedules=schedules)


@contextmanager
def exclusive(run: RunDirectory) -> Iterator[None]:
    """Be the only process that works in ``run``, for the length of the block.

    Raises:
        UserError: another process is at it.
    """
    lock = FileLock(run.path / ".lock", timeout=0)
    try:
        with lock:
            yield
    except Timeout as error:
        raise UserError("another process is working on this run", where=str(run.path)) from error


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a crash leaves the old file or the new one, never half of one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
