"""The Dockerfile: its context holds what it copies, and its constraints pin what it installs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("cluster", "llm")
"""Of the project, in the image of the services."""
COPY = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)


def complaints(root: Path) -> Iterator[str]:
    """What the files of the repository ``root`` say wrongly about images."""
    dockerfile = (root / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    ignored = (root / ".dockerignore").read_text(encoding="utf-8")
    for source in sorted(set(" ".join(COPY.findall(dockerfile)).split())):
        if not (root / source).exists():
            yield f"Dockerfile: copies {source}, which does not exist"
        elif not in_context(source, ignored):
            yield f".dockerignore: leaves out {source}, which the Dockerfile copies"
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if f'image.version="{project["version"]}"' not in dockerfile:
        yield f"Dockerfile: its label says another version than {project['version']}"
    if f"'.[{','.join(EXTRAS)}]'" not in dockerfile:
        yield f"Dockerfile: no image installs the extras {', '.join(EXTRAS)}"
    yield from unpinned((root / "deploy" / "constraints.txt").read_text(encoding="utf-8"), project)


def in_context(path: str, ignored: str) -> bool:
    """Whether a path is sent to the builder. The last pattern that fits wins, also when it fits a parent."""
    sent = True
    parents = ["/".join(path.split("/")[: count + 1]) for count in range(path.count("/") + 1)]
    for line in ignored.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        wanted = pattern.removeprefix("!")
        globs = {wanted, wanted.removeprefix("**/")}
        if any(fnmatch(parent, glob) for parent in parents for glob in globs):
            sent = pattern.startswith("!")
    return sent


def unpinned(constraints: str, project: Mapping[str, Any]) -> Iterator[str]:
    """Packages of the images that the constraints do not pin, and pins that no image needs or the project refuses."""
    pins: dict[str, str] = {}
    for line in constraints.splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            pins[canonicalize_name(name)] = version
    needed = closure(project, EXTRAS)
    yield from (f"constraints.txt: {name} is not pinned" for name in sorted(set(needed) - set(pins)))
    yield from (f"constraints.txt: {name} is in no image" for name in sorted(set(pins) - set(needed)))
    for name, requirements in needed.items():
        for requirement in requirements:
            if name in pins and not requirement.specifier.contains(pins[name], prereleases=True):
                yield f"constraints.txt: {name}=={pins[name]}, but {requirement} is needed"


def closure(project: Mapping[str, Any], extras: Iterable[str]) -> dict[str, list[Requirement]]:
    """Everything that ``project`` (the table of pyproject.toml) with ``extras`` installs, by name.

    What its packages need in turn is read from those that are installed here.
    """
    found: dict[str, list[Requirement]] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(project["name"]), extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for requirement in _required(project, name, extra):
            other = canonicalize_name(requirement.name)
            if other != canonicalize_name(project["name"]):
                found.setdefault(other, []).append(requirement)
            waiting += [(other, wanted) for wanted in ("", *requirement.extras)]
    return found


def _required(project: Mapping[str, Any], name: str, extra: str) -> Iterator[Requirement]:
    if name == canonicalize_name(project["name"]):
        yield from map(Requirement, project["optional-dependencies"][extra] if extra else project["dependencies"])
        return
    for requirement in map(Requirement, metadata.requires(name) or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement
