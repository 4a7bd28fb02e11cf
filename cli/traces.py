"""Appending to a file of traces: whole lines or none."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from shared.errors import UserError


def check(path: Path) -> None:
    """Raises ``UserError`` for a file that cannot be appended to, before anything is evaluated; makes none."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError("is a directory" if path.is_dir() else "there is no such directory", where=str(path))
    if path.exists() and not path.is_file():
        raise UserError("is no file that could be appended to", where=str(path), hint="give the path of a regular file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError("cannot write", where=str(path))


def append(path: Path, line: bytes) -> None:
    """Add ``line`` at the end, under a lock that other appenders take as well. What a full disk cut off is taken back.

    A last line that another program left without its end gets one, so that two records never share a line.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    with path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        try:
            written = file.write(line)
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
        if written != len(line):
            file.truncate(size)
            raise OSError(f"{path}: only {written} of {len(line)} bytes could be written")
