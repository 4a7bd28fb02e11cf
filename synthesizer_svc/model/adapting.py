"""Asking less of an endpoint that refuses a field of the question, or the length of the answer (pure).

Only what an answer can do without is left out: whoever reads it checks it against its schema anyway, and a seed was
best effort.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from synthesizer_svc.model.capabilities import LIMIT_FIELDS, Caching, Capabilities, SchemaOutput, Support

OUTPUT_TOKENS_MIN = 256
"""A lower limit that an endpoint names is no limit of answers."""
_CONTEXT = re.compile(r"context length (?:is |of )?(?:only )?(\d{2,9})")
_READ = re.compile(r"(\d{1,9}) (?:input tokens|in the messages|tokens from the input|of text input)")
NOT_QUITE = 16
"""Tokens less than a context leaves: some servers want one to spare, and gateways only estimate the prompt."""
_NUMBER = re.compile(r"(?<![\w.])\d{3,9}(?![\w.])")


def adapted(capabilities: Capabilities, refused: str, body: bytes) -> Capabilities | None:
    """``capabilities`` without what an endpoint has just refused, or None when nothing can be left out.

    ``refused``: what it says, the name of the field among it; ``body``: what had been sent.
    """
    sent = json.loads(body)
    limit = next(name for name in LIMIT_FIELDS if name in sent)
    if limit in refused:
        return _other_limit(capabilities, refused, limit, sent[limit])
    if "stream_options" in sent and _names(refused, "stream_options", "include_usage"):
        return replace(capabilities, stream_usage=False)
    if "seed" in sent and _names(refused, "seed"):
        return replace(capabilities, seed=Support.NO)
    if _names(refused, "response_format", "output_config", "json_schema"):
        if "response_format" in sent and capabilities.schema is not SchemaOutput.OBJECT:
            return replace(capabilities, schema=SchemaOutput.OBJECT)
        if "response_format" in sent or "output_config" in sent:
            return replace(capabilities, schema=SchemaOutput.NONE)
    if capabilities.caching is Caching.EXPLICIT and _names(refused, "cache_control"):
        return replace(capabilities, caching=Caching.NONE)
    named = {name for name in capabilities.sampling if name in sent and _names(refused, name)}
    if named:
        return replace(capabilities, sampling=tuple(name for name in capabilities.sampling if name not in named))
    return None


def shorter(refused: str, output_tokens_max: int) -> int:
    """The longest answer to allow where prompt and ``output_tokens_max`` together exceed a context, and ``refused``
    says how large it and the prompt are; 0 where it does not, or where what is left is no room for an answer.

    vLLM, SGLang and vendors refuse such a question though the prompt alone would do; llama.cpp and Ollama stop at the
    context's end. vLLM reads no more of a prompt than is too much: then its count says nothing, and half is tried.
    """
    context, read = _CONTEXT.search(refused), _READ.search(refused)
    if not context or not read:
        return 0
    left = int(context[1]) - int(read[1])
    if output_tokens_max - left <= 1:
        left = output_tokens_max // 2
    left -= NOT_QUITE
    return left if OUTPUT_TOKENS_MIN <= left < output_tokens_max else 0


def _other_limit(capabilities: Capabilities, refused: str, field: str, sent: int) -> Capabilities | None:
    """A smaller limit where the endpoint names its own, otherwise the field's other name."""
    smaller = [number for number in map(int, _NUMBER.findall(refused)) if OUTPUT_TOKENS_MIN <= number < sent]
    if smaller:
        return replace(capabilities, output_tokens=max(smaller))
    if capabilities.limit_field != field:
        return None  # Anthropic's has one name
    other = next(name for name in LIMIT_FIELDS if name != field)
    return replace(capabilities, limit_field=other)


def _names(refused: str, *fields: str) -> bool:
    return any(re.search(rf"(?<![a-z]){field}(?![a-z])", refused) for field in fields)
