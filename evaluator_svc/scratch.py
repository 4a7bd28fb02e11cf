"""Private directories in shared memory, where trusted children leave cases for the controller; no box sees them.

A directory's name holds its owner's process id, so that what a killed process left behind is found and removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - private directories are made in it
_NAME = re.compile(r"ke-oracle-(\d+)-\w+")


def place() -> Path:
    """Where the directories are made."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def make(within: Path | None = None) -> Path:
    """A new directory of mode 0700 that belongs to this process."""
    return Path(tempfile.mkdtemp(prefix=f"ke-oracle-{os.getpid()}-", dir=within or place()))


def sweep(within: Path | None = None) -> list[Path]:
    """Remove and return this user's directories whose process is gone."""
    swept = []
    for directory in sorted((within or place()).glob("ke-oracle-*")):
        name = _NAME.fullmatch(directory.name)
        if name is None or _alive(int(name.group(1))) or directory.stat().st_uid != os.getuid():
            continue
        shutil.rmtree(directory, ignore_errors=True)  # another worker may be sweeping, too
        swept.append(directory)
    return swept


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
