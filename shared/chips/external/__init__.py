"""What a chip sheet says of a vendor's own tools: three commands and what they tell (``docs/chips.md``).

The JSON that the commands read and write is stated by the schemas beside this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.chips.tables import table
from shared.errors import ChipError

CONTRACT = 1
BASES = ("counted", "modelled")
MEASURED = "measured"
BRACES = re.compile(r"[{}]")
SHEET = "{sheet}"
"""In a command: the folder of the sheet, wherever the box has it."""
REPEAT_MIN, REPEAT_MAX = 2, 16
METRIC = re.compile(r"[a-z][a-z0-9_]{0,47}")
"""What a profile may name a metric."""
SUFFIX = re.compile(r"\.[A-Za-z0-9_.+-]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One of the three. It gets the path of its request besides, as the last argument.

    Raises:
        ValueError: an empty command, a limit that is none, or braces that mean nothing.
    """

    command: tuple[str, ...]
    time_s: float = 60.0
    """When it is ended. Of ``run`` and ``profile`` it is the limit of the kernel, too."""
    memory_mib: int = 3072
    """Of all its processes."""

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise ValueError('`command` is empty: expected e.g. ["/usr/bin/python3", "{sheet}/build.py"]')
        first = self.command[0]
        if not first.startswith(("/", f"{SHEET}/")):
            raise ValueError(f"the program is `{first}`: expected an absolute path, or one below {{sheet}}/")
        for word in self.command:
            if BRACES.search(word.replace(SHEET, "")):
                raise ValueError(f"`{word}` has braces: only {{sheet}} stands for something")
        if self.time_s <= 0 or self.memory_mib <= 0:
            raise ValueError("`time_s` and `memory_mib` are more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Kernels that ``kernelevolve chips check`` tries, in files beside the sheet: of ``x + b``, in one language.

    ``x`` is float32 of any two dimensions, ``b`` a vector of its second one.
    """

    language: str
    right: str
    wrong: str
    """Runs, and gives another answer."""
    crashes: str
    hangs: str
    idle: str
    """Returns at once and writes nothing."""
    broken: str = ""
    """Is no program of the language."""
    flags: tuple[str, ...] = ()

    @property
    def kernels(self) -> Mapping[str, str]:
        """File by what it is."""
        named = {"right": self.right, "wrong": self.wrong, "crashes": self.crashes, "hangs": self.hangs}
        named["idle"] = self.idle
        return named | ({"broken": self.broken} if self.broken else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """The sheet's table ``[external]``.

    Raises:
        ValueError: a contract, basis or number that is none of the possible ones.
    """

    folder: Path
    """Of the sheet: commands and kernels lie in it."""
    contract: int
    metric: str
    """The key among a profile's metrics that is the cost of a call."""
    unit: str
    basis: str
    version: str
    """Of the vendor's tools, for the record: raise it when they change, and nothing built before is used."""
    suffixes: dict[str, str]
    """Language -> suffix of its source files."""
    build: Command
    run: Command
    profile: Command
    check: Check | None = None
    repeat: int = REPEAT_MIN
    """Profiles of one kernel, each in fresh processes; what is counted has to agree."""
    inputs_back: bool = False
    """``run`` also hands back the inputs as they are after the call, so that a write into one is seen."""
    flags: tuple[str, ...] = ()
    """Regular expressions: a flag of a kernel is refused unless one of them matches all of it."""
    mounts: tuple[str, ...] = ()
    """Absolute paths that the commands may read besides the system's programs and the sheet's folder."""
    devices: tuple[str, ...] = ()
    """Device nodes, below /dev."""
    artefact_mib: int = 64

    def __post_init__(self) -> None:
        if self.contract != CONTRACT:
            raise ValueError(f"`contract` is {self.contract}: this version speaks {CONTRACT}")
        if self.basis == MEASURED:
            raise ValueError("`basis` is measured: times of a chip are not compared yet; counts and models are")
        if self.basis not in BASES:
            raise ValueError(f"`basis` is `{self.basis}`: expected {' or '.join(BASES)}")
        if not self.metric or not self.unit or not self.version:
            raise ValueError("`metric`, `unit` and `version` are texts that are not empty")
        if not METRIC.fullmatch(self.metric):
            raise ValueError(f"`metric` is {self.metric!r}: expected lower case letters, digits and _, at most 48")
        if not self.unit.isprintable():
            raise ValueError(f"`unit` is {self.unit!r}: expected what can be printed on a line")
        if not REPEAT_MIN <= self.repeat <= REPEAT_MAX:
            raise ValueError(f"`repeat` is {self.repeat}: expected {REPEAT_MIN} to {REPEAT_MAX}")
        if not 0 < self.artefact_mib <= 1024:
            raise ValueError(f"`artefact_mib` is {self.artefact_mib}: expected 1 to 1024")
        for language, suffix in self.suffixes.items():
            if not SUFFIX.fullmatch(suffix):
                raise ValueError(f"the suffix of `{language}` is `{suffix}`: expected e.g. `.c`")
        for path in self.mounts:
            if not path.startswith("/"):
                raise ValueError(f"the mount `{path}` is not absolute")
        for path in self.devices:
            if not path.startswith("/dev/") or ".." in path:
                raise ValueError(f"the device `{path}` is not below /dev")
        for pattern in self.flags:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"`{pattern}` in `flags` is no regular expression: {error}") from error

    def refused(self, flags: tuple[str, ...]) -> str | None:
        """The first of ``flags`` that the sheet does not allow."""
        return next((one for one in flags if not any(re.fullmatch(each, one) for each in self.flags)), None)


def read(raw: Any, folder: Path, languages: tuple[str, ...], where: str) -> External:
    """The table ``[external]`` of a sheet whose kernels are in ``languages``.

    Raises:
        ChipError: what is wrong, in which table.
    """
    if not isinstance(raw, Mapping):
        raise ChipError("is no table", where=where, hint="write [external] and its keys below")
    rest = dict(raw)
    given: dict[str, Any] = {"folder": folder}
    for name in ("build", "run", "profile"):
        if name not in rest:
            raise ChipError(f"the command `{name}` is missing", where=where, hint=f"add [external.{name}]")
        given[name] = table(Command, rest.pop(name), f"{where}.{name}")
    check = rest.pop("check", None)
    if check is not None:
        given["check"] = table(Check, check, f"{where}.check")
    else:
        given["check"] = None
    found = table(External, rest, where, **given)
    lacking = [language for language in languages if language not in found.suffixes]
    if lacking:
        raise ChipError(
            f"language `{lacking[0]}` has no suffix", where=f"{where}.suffixes", hint=f'add {lacking[0]} = ".…"'
        )
    if found.check is not None:
        _check(found.check, found, languages, f"{where}.check")
    return found


def _check(check: Check, found: External, languages: tuple[str, ...], where: str) -> None:
    if check.language not in languages:
        raise ChipError(
            f"language `{check.language}` is none of the chip's", where=where, hint=f"one of {', '.join(languages)}"
        )
    bad = found.refused(check.flags)
    if bad is not None:
        raise ChipError(f"flag `{bad}` is refused by [external] flags", where=where)
    for name, path in check.kernels.items():
        if not (found.folder / path).is_file():
            raise ChipError(f"there is no file `{path}`", where=f"{where}.{name}", hint="a path beside the sheet")
