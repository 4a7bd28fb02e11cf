"""Capabilities of vendors and servers as their documentation has them; what it leaves open stays unknown (pure).

None names prices, context sizes or models: those change more often than this project, and belong to the user's file.
``kernelevolve models check`` measures what an endpoint really does.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from synthesizer_svc.model.capabilities import Caching, Capabilities, Protocol, Reasoning, SchemaOutput, Support

PRESETS = {
    # https://platform.openai.com/docs/api-reference/chat: `max_tokens` is deprecated and refused by reasoning models,
    # which refuse sampling fields, too.
    "openai": Capabilities(
        sampling=(),
        seed=Support.UNKNOWN,
        schema=SchemaOutput.SCHEMA,
        caching=Caching.AUTOMATIC,
        reasoning=Reasoning.HIDDEN,
        limit_field="max_completion_tokens",
    ),
    # https://docs.anthropic.com/en/api/messages, version 2023-06-01: newer ones refuse sampling fields, none has seeds.
    "anthropic": Capabilities(
        protocol=Protocol.ANTHROPIC,
        sampling=(),
        seed=Support.NO,
        schema=SchemaOutput.SCHEMA,
        caching=Caching.EXPLICIT,
        reasoning=Reasoning.NONE,  # thinking has to be asked for, and is not
    ),
    # https://docs.vllm.ai: the OpenAI-compatible server.
    "vllm": Capabilities(
        sampling=("temperature", "top_p", "top_k"),
        seed=Support.YES,
        schema=SchemaOutput.SCHEMA,
        caching=Caching.AUTOMATIC,
        reasoning=Reasoning.SHOWN,
    ),
    # https://docs.sglang.ai: counts cached tokens only with --enable-cache-report.
    "sglang": Capabilities(
        sampling=("temperature", "top_p", "top_k"),
        seed=Support.YES,
        schema=SchemaOutput.SCHEMA,
        caching=Caching.AUTOMATIC,
        reasoning=Reasoning.SHOWN,
    ),
    # https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    "llama.cpp": Capabilities(
        sampling=("temperature", "top_p", "top_k"),
        seed=Support.YES,
        schema=SchemaOutput.SCHEMA,
        caching=Caching.AUTOMATIC,
        reasoning=Reasoning.SHOWN,
    ),
    # https://docs.ollama.com/api/openai-compatibility: cuts prompts to its context without a word.
    "ollama": Capabilities(
        sampling=("temperature", "top_p"),
        seed=Support.YES,
        schema=SchemaOutput.SCHEMA,
        caching=Caching.AUTOMATIC,
        reasoning=Reasoning.SHOWN,
    ),
    "compatible": Capabilities(),
}
"""By the name that ``server`` gives in an endpoint's configuration."""

_HOSTS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}


def preset_for(url: str, protocol: Protocol | None = None) -> str:
    """The name of the preset for an endpoint that names none."""
    by_host = _HOSTS.get(urlsplit(url).hostname or "", "")
    if by_host and protocol in (None, PRESETS[by_host].protocol):
        return by_host
    return "anthropic" if protocol is Protocol.ANTHROPIC else "compatible"
