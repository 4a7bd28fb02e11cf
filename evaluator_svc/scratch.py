"""Private directories of a process: cases that trusted children leave for the controller, and what a build box writes.

Their process holds a lock on each (flock(2)), which ends with the process, whatever ends it: so what a killed one left
behind is told from what is in use, by processes of other containers, too, that share the directory but no process ids.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - private directories are made in it
CASES, BUILD = "oracle", "build"
"""Kinds. Cases lie in memory, and no box sees them."""
_NAME = re.compile(r"ke-(oracle|build)-\d+-\w+")
TRIES = 10
"""Another process may be sweeping while a directory is made, and take it for one that was left."""


class Scratch:
    """A directory of mode 0700 that belongs to this process until ``close`` removes it; also a context manager."""

    def __init__(self, kind: str, within: Path | None = None) -> None:
        for _ in range(TRIES):
            self.path = Path(tempfile.mkdtemp(prefix=f"ke-{kind}-{os.getpid()}-", dir=within or place(kind)))
            lock = _locked(self.path)
            if lock is not None:
                self._lock = lock
                return
        raise OSError(f"directories in {within or place(kind)} are removed as soon as they are made")

    def close(self) -> None:
        """Remove the directory and what is in it."""
        try:
            _remove(self.path)
        finally:
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def place(kind: str) -> Path:
    """Where directories of a kind are made."""
    return SHARED_MEMORY if kind == CASES and SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def sweep(within: Path | None = None) -> list[Path]:
    """Remove and return the directories whose process is gone: in ``within``, or wherever they are made."""
    swept = []
    for directory in sorted({within} if within else {place(CASES), place(BUILD)}):
        for path in sorted(directory.glob("ke-*-*-*")):
            lock = _locked(path) if _NAME.fullmatch(path.name) else None
            if lock is None:
                continue
            try:
                _remove(path)
                swept.append(path)
            finally:
                os.close(lock)
    return swept


def _locked(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock; None where somebody else does, or where it is none of ours."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), directory.lstat()):
            return descriptor
    except OSError:  # it is held, or has just been removed
        pass
    os.close(descriptor)
    return None


def _remove(directory: Path) -> None:
    """With everything in it, also where foreign code took away the right to look."""
    try:
        shutil.rmtree(directory)
    except PermissionError:
        _open_up(directory)
        shutil.rmtree(directory)


def _open_up(directory: Path) -> None:
    """Give this user the right to empty ``directory`` and those below it. Links are not followed."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(0o700)
    finally:
        os.close(descriptor)
    for entry in list(os.scandir(directory)):
        if entry.is_dir(follow_symlinks=False):
            _open_up(Path(entry.path))
