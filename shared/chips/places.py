"""Where chip sheets lie: in the package, and in folders and files that ``KERNELEVOLVE_CHIPS`` names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from shared.errors import ChipError

VARIABLE = "KERNELEVOLVE_CHIPS"
SUFFIX = ".toml"
ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
"""An id is part of the names of topics and queues."""


def sheets(environment: Mapping[str, str] | None = None) -> dict[str, Path]:
    """Path of every sheet by the chip's id, in the order of ids. Those named by the variable come before the package's.

    Raises:
        ChipError: the variable names something that is not there, two sheets of one chip, or a name that is no id.
    """
    found: dict[str, Path] = {}
    said = (os.environ if environment is None else environment).get("KERNELEVOLVE_CHIPS", "")
    for part in filter(None, said.split(os.pathsep)):
        for path in _below(Path(part)):
            chip = id_of(path)
            if chip in found and found[chip].resolve() != path.resolve():
                raise ChipError(
                    f"two sheets are of chip `{chip}`: {found[chip]} and {path}", where=VARIABLE, hint="rename one"
                )
            found[chip] = path
    own = {path.stem: path for path in _packaged()}
    return dict(sorted((own | found).items()))


def packaged(path: Path) -> bool:
    """Whether a sheet came with the package."""
    return path.parent == _folder()


def id_of(path: Path) -> str:
    """The id of the chip whose sheet is at ``path``.

    Raises:
        ChipError: its name is no id.
    """
    if path.suffix != SUFFIX or not ID.fullmatch(path.stem):
        raise ChipError(
            "is no name of a chip sheet", where=str(path), hint="<id>.toml, an id of lower case letters, digits, _ . -"
        )
    return path.stem


def name(path: Path) -> str:
    """Have the sheet at ``path`` known to this process and those it starts; returns the chip's id.

    Raises:
        ChipError: there is no such file, or its name is no id.
    """
    if not path.is_file():
        raise ChipError("there is no such chip sheet", where=str(path))
    chip, whole = id_of(path), str(path.resolve())
    before = os.environ.get(VARIABLE, "")
    if whole not in before.split(os.pathsep):
        os.environ[VARIABLE] = os.pathsep.join(filter(None, (before, whole)))
    return chip


def _below(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(place.glob(f"*{SUFFIX}"))
    if place.is_file():
        return [place]
    raise ChipError(f"names `{place}`, which is not there", where=VARIABLE, hint="folders of sheets, or sheets")


def _packaged() -> list[Path]:
    return sorted(_folder().glob(f"*{SUFFIX}"))


def _folder() -> Path:
    return Path(str(files("shared.chips")))
