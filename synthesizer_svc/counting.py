"""Prompts whose tokens an endpoint's own tokenizer counted.

Composing is pure and asking an endpoint is not: a prompt is composed with bounds, the texts that were bounded are
counted, and it is composed again, until nothing is left to count. An endpoint without a tokenizer leaves the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from synthesizer_svc.prompts import Counted, DoesNotFit, Prompt, PromptInput, TokenBudget, compose

ROUNDS_MAX = 4
"""Cutting depends on counts, so another round may ask for other texts. What is unknown after these stays bounded."""
KNOWN_MAX = 2_000
"""Counts remembered; all nodes of a search share contract and operator."""


class Tokenizer(Protocol):
    async def count(self, texts: Sequence[str]) -> Mapping[str, int] | None:
        """Tokens of each text; None when this endpoint counts none now."""
        ...


class CountingComposer:
    """Composes for one endpoint."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        """``tokenizer`` None: nobody counts, so tokens are bounded."""
        self._tokenizer = tokenizer
        self._known: dict[str, int] = {}

    async def compose(self, given: PromptInput, budget: TokenBudget) -> Prompt:
        """As ``prompts.compose``, which see for what it raises; ``exact`` if nothing had to be bounded."""
        if self._tokenizer is None:
            return compose(given, budget)
        known = dict(self._known)
        for _ in range(ROUNDS_MAX):
            missed = _missed(given, budget, known)
            counted = await self._tokenizer.count(missed) if missed else None
            if not counted:
                break
            known.update(counted)
        self._remember(known)
        return compose(given, budget, Counted(known))

    def _remember(self, known: dict[str, int]) -> None:
        self._known = dict(list(known.items())[-KNOWN_MAX:])


def _missed(given: PromptInput, budget: TokenBudget, known: Mapping[str, int]) -> tuple[str, ...]:
    """The texts whose counts composing asks for and ``known`` lacks."""
    counter = Counted(known)
    with suppress(DoesNotFit):  # by bounds, perhaps, and not by counts
        compose(given, budget, counter)
    return tuple(counter.missed)
