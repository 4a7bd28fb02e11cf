"""What a prompt is composed from, and what composing hands back (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.chips import ChipSheet, Gpu, Isa, Machine
from shared.events import Evaluation, MoveOutcome, SkillDistilled, Status
from shared.knowledge import Passage


class Asking(StrEnum):
    """How a model answers; ``Context.asking``."""

    WHOLE = "whole"
    """The whole kernel in one fenced block."""
    EDITS = "edits"
    """SEARCH/REPLACE blocks against the first parent."""
    MOVES = "moves"
    """A choice of schedule moves as JSON of a given schema."""


class Fate(StrEnum):
    """What became of a part under the token budget."""

    KEPT = "kept"
    CUT = "cut"
    """Shown in part, with a mark where something is missing."""
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A kernel as the prompt shows it."""

    candidate_id: str
    source: str
    language: str = ""
    """Empty: that of the kernel to come."""
    evaluation: Evaluation | None = None
    outcome: MoveOutcome | None = None
    """What is known of how it came to be; None for nothing."""

    @property
    def failed(self) -> bool:
        return self.evaluation is not None and self.evaluation.status is not Status.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptInput:
    """What to compose from. The memory mode has already been applied: what is here is shown, as the budget allows.

    ``choices`` describes the schedule moves on offer and how to name them; shown as it is, for ``Asking.MOVES`` alone.
    """

    operator_name: str
    operator_source: str
    chip: ChipSheet
    machine: Machine | None
    language: str
    flags: tuple[str, ...]
    threads: int
    entry: str = "ke_launch"
    asking: Asking = Asking.WHOLE
    choices: str = ""
    parents: tuple[Quoted, ...] = ()
    siblings: tuple[Quoted, ...] = ()
    negative: tuple[Quoted, ...] = ()
    history: tuple[MoveOutcome, ...] = ()
    """The first parent and its ancestors, nearest first."""
    setbacks: tuple[MoveOutcome, ...] = ()
    """Moves near by that failed or did not pay, nearest first."""
    passages: tuple[Passage, ...] = ()
    """Most relevant first, as ``skills``."""
    skills: tuple[SkillDistilled, ...] = ()

    @property
    def isa(self) -> Isa | None:
        """The instruction set it is written for, on a processor."""
        return self.machine if isinstance(self.machine, Isa) else None

    @property
    def gpu(self) -> Gpu | None:
        return self.machine if isinstance(self.machine, Gpu) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUsed:
    """One part of a prompt, in the prompt's order. ``tokens`` are those of what is shown, 0 when dropped."""

    name: str
    tokens: int
    fate: Fate
    ids: tuple[str, ...] = ()
    """Of the documents, skills and kernels that are shown, whole or cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """``system`` is the same for every expansion of one chip, language and asking, so that endpoints cache it."""

    system: str
    user: str
    parts: tuple[PartUsed, ...] = ()
    exact: bool = False
    """Whether tokens were counted by the endpoint's tokenizer; else they are bounds from above."""

    def shown(self, part: str) -> tuple[str, ...]:
        """Ids of what is shown in ``part``."""
        return next((used.ids for used in self.parts if used.name == part), ())

    @property
    def tokens(self) -> int:
        """Of both messages."""
        return sum(part.tokens for part in self.parts)
