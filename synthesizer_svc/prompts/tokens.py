"""How many tokens a text is: counted where a tokenizer is at hand, bounded from above otherwise (pure).

The bound is bytes of UTF-8. Every token of a byte-level BPE (GPT, Llama 3, Qwen, SmolLM, Mistral's Tekken) and of
SentencePiece with byte fallback (Llama 2, Gemma) stands for at least one byte of the text, and the latter puts at most
one mark before it. Tokenizers that first rewrite the text into a longer one (NFKC) are outside the bound. English and
code have three to four bytes a token, so a bound wastes room; it is for endpoints without a tokenizer, whose contexts
are large.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

TEXT_TOKENS = 2
"""Marks that a tokenizer puts around a text."""
JOINT_TOKENS = 2
"""Where two texts are joined: a tokenizer may split the break between them otherwise than at the end of a text."""


class TokenCounter(Protocol):
    @property
    def exact(self) -> bool:
        """Whether every count so far was a tokenizer's, not a bound."""
        ...

    def count(self, text: str) -> int:
        """Tokens of ``text``, never too low."""
        ...


class ByteBound:
    """No tokenizer at hand."""

    exact = False

    def count(self, text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass")) + TEXT_TOKENS if text else 0


class Counted:
    """Counts that an endpoint's tokenizer gave, by text; others are bounded and listed in ``missed``.

    Composing is pure and an endpoint is not, so a prompt is composed, what was missed is counted, and it is composed
    again (``CountingComposer`` in ``synthesizer_svc/counting.py``).
    """

    def __init__(self, known: Mapping[str, int]) -> None:
        self._known = known
        self._bound = ByteBound()
        self.missed: dict[str, None] = {}

    @property
    def exact(self) -> bool:
        return not self.missed

    def count(self, text: str) -> int:
        known = self._known.get(text)
        if known is None and text:
            self.missed[text] = None
            return self._bound.count(text)
        return known or 0
