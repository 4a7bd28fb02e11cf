"""How much room the endpoints' contexts leave for a question and for its answer (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from synthesizer_svc.prompts import TokenBudget
from synthesizer_svc.prompts.budget import MARGIN_TOKENS

ANSWER_SHARE = 2
"""An answer takes at most one part in so many of a context: a question that leaves nothing out wants the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """``context_tokens``: of the smallest endpoint that may be asked; 0 when it is unknown."""

    prompt_tokens_max: int
    context_tokens: int = 0

    @classmethod
    def of(cls, contexts: Iterable[int], prompt_tokens_max: int) -> Room:
        """The room of endpoints with these contexts; whichever is asked must hold the prompt. 0 is unknown."""
        return cls(prompt_tokens_max=prompt_tokens_max, context_tokens=min(filter(None, contexts), default=0))

    def answer(self, tokens_max: int) -> int:
        """The longest answer to allow, of at most ``tokens_max`` tokens."""
        return max(1, min(tokens_max, self.context_tokens // ANSWER_SHARE)) if self.context_tokens else tokens_max

    def left(self, said_tokens: int, tokens_max: int) -> int:
        """The longest answer to allow, of at most ``tokens_max`` tokens, after what was said; below 1 there is none."""
        return min(tokens_max, self.context_tokens - said_tokens - MARGIN_TOKENS) if self.context_tokens else tokens_max

    def question(self, answer_tokens: int) -> TokenBudget:
        """What is left for the prompt beside an answer.

        Raises:
            ValueError: nothing.
        """
        return TokenBudget.of(
            context_tokens=self.context_tokens, output_tokens=answer_tokens, prompt_tokens_max=self.prompt_tokens_max
        )
