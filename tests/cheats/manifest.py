"""What an entry of the suite says about its candidate: which mechanism, on which operator, and what must come of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from evaluator_svc.layers import Layer
from shared.events import Status

HERE = Path(__file__).parent
OPERATORS = HERE / "operators"
_INCLUDE = re.compile(r'^#include "(honest/\w+\.hpp)"\n', re.MULTILINE)


class Language(StrEnum):
    CPP = "cpp"
    PYTHON = "python"
    TRITON = "triton"


SUFFIX = {Language.CPP: ".cpp", Language.PYTHON: ".py", Language.TRITON: ".py"}


class Naive(StrEnum):
    """How the naive harness that believes this cheat orders its trial."""

    REFERENCE_FIRST = "reference first"
    CANDIDATE_FIRST = "candidate first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """``name`` is its file without the suffix. ``threads`` are granted to it.

    ``needs_clock``: told by times alone, so an interpreter, which has none, has no part in it. ``needs_gpu``: uses what
    only a device has.
    """

    language: Language
    name: str
    operator: str
    threads: int = 1
    flags: tuple[str, ...] = ()
    needs_clock: bool = False
    needs_gpu: bool = False

    @property
    def folder(self) -> Path:
        raise NotImplementedError

    @property
    def path(self) -> Path:
        return self.folder / self.language / f"{self.name}{SUFFIX[self.language]}"

    @property
    def source(self) -> str:
        """Its text as it is submitted: one translation unit, so what it includes of ``honest/`` stands in it."""
        return _INCLUDE.sub(lambda found: (HERE / found[1]).read_text(), self.path.read_text())

    @property
    def build_flags(self) -> tuple[str, ...]:
        return self.flags or (("-O2", "-fopenmp") if self.language is Language.CPP else ())

    @property
    def id(self) -> str:
        return f"{self.language}-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheat(Candidate):
    """``status`` and ``layer`` hold what may come out: more than one where the machine's timing decides which layer is
    first. ``says`` must occur in the evidence. ``naive``: the naive harness believes it, in this order; None where a
    harness has no part in it (attacks on the machine), or where it is honest in all but what the harness cannot see.
    """

    status: tuple[Status, ...]
    layer: tuple[Layer, ...]
    says: str = ""
    naive: Naive | None = None
    idle: bool = False
    """What it waits for never comes, so it may pass, if it gains nothing over the kernel in it that is honest."""

    @property
    def folder(self) -> Path:
        return HERE / "candidates"

    @property
    def mechanism(self) -> str:
        """``H03`` of ``h03_background_thread``."""
        return self.name[:3].upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Candidate):
    """The right kernel of ``honest/``, which native candidates have in them for what they do honestly."""

    @property
    def source(self) -> str:
        header = (HERE / "honest" / f"{self.operator}.hpp").read_text()
        launch = 'extern "C" int ke_launch(const KeTensor* in, int, KeTensor* out, int, void*)'
        return f"{header}\n{launch} {{ {self.operator}(in, out); return KE_OK; }}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAlike(Candidate):
    """An honest kernel that looks like the cheat ``like``; it must pass."""

    like: str

    @property
    def folder(self) -> Path:
        return HERE / "look_alikes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An operator that no kernel can be judged on; its refusal says ``says``."""

    mechanism: str
    operator: str
    says: str

    @property
    def id(self) -> str:
        return f"operator-{self.operator}"


Entry = Cheat | LookAlike | Refused
