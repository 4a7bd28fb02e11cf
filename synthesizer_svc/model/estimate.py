"""Token counts where an endpoint gives none: never too low (pure).

Vocabularies of today's models cover every byte, so that no text has more tokens than UTF-8 bytes; what a chat template
puts around messages is bounded by the constants below. That is three to four times too high for code, and safe.
"""

from __future__ import annotations

from shared.events import Usage
from synthesizer_svc.model import CompletionRequest

TEMPLATE_TOKENS = 64
"""Around a conversation: some templates write a system text of their own."""
MESSAGE_TOKENS = 16
"""Around one message: roles and separators."""
SCHEMA_TOKENS = 256
"""Beside a schema's own text: some servers explain it to the model."""


def prompt_tokens(request: CompletionRequest) -> int:
    """No endpoint counts more for ``request``."""
    texts = [request.system, *(message.text for message in request.messages)]
    schema = text_tokens(request.schema) + SCHEMA_TOKENS if request.schema else 0
    return TEMPLATE_TOKENS + sum(text_tokens(text) + MESSAGE_TOKENS for text in texts) + schema


def words(request: CompletionRequest) -> int:
    """No endpoint that reads all of ``request`` counts fewer tokens: tokenizers join no words across blanks."""
    return sum(len(text.split()) for text in (request.system, *(message.text for message in request.messages)))


def text_tokens(text: str) -> int:
    """No tokenizer makes more of ``text``."""
    return len(text.encode("utf-8", errors="replace"))


def most(request: CompletionRequest) -> Usage:
    """What one attempt at ``request`` can use, all of it billed and nothing cached. Its price is the endpoint's."""
    return Usage(
        input_tokens=prompt_tokens(request),
        output_tokens=request.output_tokens_max,
        requests=1,
        estimated=True,
    )
