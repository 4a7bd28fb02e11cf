"""How many tokens a prompt may have, how many of them each part, and what is left out first (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MARGIN_TOKENS = 128
"""For what the endpoint's chat template puts around the messages."""
FLOOR_TOKENS = 200
"""A source that must be shown is cut to no less than this."""


class PartName(StrEnum):
    """Parts in the order of the prompt; ``SYSTEM`` is the contract, the chip and the form of the answer."""

    SYSTEM = "system"
    OPERATOR = "operator"
    DIAGNOSIS = "diagnosis"
    DOCUMENTS = "documents"
    SKILLS = "skills"
    SETBACKS = "setbacks"
    FAILURES = "failures"
    SIBLINGS = "siblings"
    PARENTS = "parents"
    HISTORY = "history"
    CHOICES = "choices"
    TASK = "task"


SHARES = {
    PartName.OPERATOR: 0.30,
    PartName.DIAGNOSIS: 0.10,
    PartName.DOCUMENTS: 0.20,
    PartName.SKILLS: 0.04,
    PartName.SETBACKS: 0.06,
    PartName.FAILURES: 0.15,
    PartName.SIBLINGS: 0.15,
    PartName.PARENTS: 0.50,
    PartName.HISTORY: 0.04,
}
"""The most of the whole that a part may take, however much of it there is; few prompts have all parts."""
NEVER_DROPPED = (PartName.SYSTEM, PartName.OPERATOR, PartName.PARENTS, PartName.CHOICES, PartName.TASK)
DROPPING_ORDER = (
    PartName.SIBLINGS,
    PartName.FAILURES,
    PartName.DOCUMENTS,
    PartName.SKILLS,
    PartName.HISTORY,
    PartName.SETBACKS,
    PartName.DIAGNOSIS,
)
"""What goes first where all parts together exceed the whole, the last of each part before its first. Other kernels come
before knowledge, because they are long and the parent is one already; what was measured on the parent goes last."""
CUTTING_ORDER = (PartName.PARENTS, PartName.OPERATOR)
"""What is cut when nothing is left to drop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """``tokens`` is the most that system and user message may have together.

    Raises:
        ValueError: nothing is left for a prompt.
    """

    tokens: int

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"{self.tokens} tokens are left for the prompt")

    @classmethod
    def of(cls, *, context_tokens: int, output_tokens: int, prompt_tokens_max: int) -> TokenBudget:
        """What an endpoint's context leaves beside its answer and a margin, at most ``prompt_tokens_max``.

        ``context_tokens`` 0 is unknown. ``output_tokens`` is for the first answer: repairs share what it leaves.

        Raises:
            ValueError: as the class does.
        """
        room = context_tokens - output_tokens - MARGIN_TOKENS if context_tokens else prompt_tokens_max
        return cls(tokens=min(room, prompt_tokens_max))

    def share(self, part: PartName) -> int:
        """The most tokens that ``part`` may take."""
        return int(self.tokens * SHARES.get(part, 1.0))


PROMPT_TOKENS_MAX = 64_000
UNTOLD = TokenBudget(tokens=PROMPT_TOKENS_MAX)
"""For an endpoint whose context is not known."""
