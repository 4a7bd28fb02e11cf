"""Starting a Python of this project as this user, and, where this one is root, as an ordinary one."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ORDINARY = 65534
DEBIANS = Path(f"/usr/bin/python3.{sys.version_info.minor}")
USERS = ("this-user", "ordinary-user")


def command(user: str) -> list[str]:
    """How to start Python as ``user``; skips the test where that cannot be."""
    if user == "this-user" or os.geteuid() != 0:
        return [sys.executable]
    readable = next((path for path in (Path(sys.executable), DEBIANS) if _walkable(path)), None)
    setpriv = shutil.which("setpriv")
    if readable is None or setpriv is None or not _walkable(ROOT / "shared"):
        pytest.skip("root keeps Python or the project where an ordinary user cannot read it, or has no setpriv")
    return [setpriv, f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", str(readable)]


def environment(home: Path, **more: str) -> dict[str, str]:
    """For ``command``: finds the project and its packages, with a home of its own."""
    paths = [str(ROOT), *dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))]
    places = {"HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home)}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths), **places, **more}


def _walkable(path: Path) -> bool:
    return path.exists() and all(
        one.stat().st_mode & 0o005 == 0o005 for one in (path.resolve(), *path.resolve().parents)
    )
