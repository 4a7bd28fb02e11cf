"""Where this Python, its packages and its headers lie: what a box needs to run a program that imports torch."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from functools import cache
from pathlib import Path

from shared.boxes import Mount

SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
"""Shared libraries of the system, and how to find them."""
SHARED = (Path("/usr"), Path("/usr/local"))
"""Prefixes that hold more than a Python: of these only the Python's own parts are shown."""


def program() -> Path:
    """The interpreter, by the name under which it finds its packages."""
    return Path(sys.executable)


@cache
def mounts() -> tuple[Mount, ...]:
    """Read-only directories and files, each at its own place. Nothing of a project that is installed as a link."""
    found: dict[Path, None] = {}
    for prefix in (Path(sys.base_prefix), Path(sys.prefix)):
        if prefix in SHARED:
            found |= dict.fromkeys(_parts(prefix))
        elif prefix == Path(sys.base_prefix):
            found[prefix] = None
        else:  # a virtual environment, which may lie inside a project
            found |= dict.fromkeys([prefix / "pyvenv.cfg", prefix / "bin", *_libraries(prefix)])
    found |= dict.fromkeys(Path(sysconfig.get_path(name)) for name in ("stdlib", "platlib", "purelib", "include"))
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin is not None:
        found[Path(torch.origin).parent.parent] = None
    shown = [path for path in found if path.exists()]
    outermost = [path for path in shown if not any(other in path.parents for other in shown)]
    return tuple(Mount(source=path, target=str(path)) for path in outermost)


def system() -> tuple[Mount, ...]:
    """What lies at ``SYSTEM``, each at its own place."""
    return tuple(Mount(source=Path(path), target=path) for path in SYSTEM if Path(path).exists())


def packages() -> list[str]:
    """Where Python finds modules in a box: its own, and torch's and its neighbours'."""
    standard = sysconfig.get_path("stdlib")
    paths = [standard, f"{standard}/lib-dynload", sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    found = importlib.util.find_spec("torch")
    if found is not None and found.origin is not None:
        paths.append(str(Path(found.origin).parent.parent))
    return list(dict.fromkeys(paths))


def _parts(prefix: Path) -> list[Path]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [
        *(prefix / "lib").glob("libpython*"),
        *(prefix / "bin").glob("python*"),
        *(prefix / part / version for part in ("lib", "lib64", "include")),
    ]


def _libraries(prefix: Path) -> list[Path]:
    return [path for path in (prefix / "lib", prefix / "lib64") if path.is_dir() and not path.is_symlink()]
