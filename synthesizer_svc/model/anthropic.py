"""Anthropic's messages, as the vendor and servers with the same route speak them (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from synthesizer_svc.model import CompletionRequest
from synthesizer_svc.model.capabilities import Caching, Capabilities, SchemaOutput
from synthesizer_svc.model.draft import Draft, End, count
from synthesizer_svc.model.exchange import Call
from synthesizer_svc.model.wording import with_schema

VERSION = "2023-06-01"
"""Pinned: each version is another protocol."""
_ENDS = {
    "end_turn": End.OWN,
    "stop_sequence": End.OWN,
    "max_tokens": End.LIMIT,
    "model_context_window_exceeded": End.LIMIT,
    "refusal": End.REFUSAL,
    "pause_turn": End.ABORTED,  # of tools at the vendor's, which were not asked for
    "tool_use": End.ABORTED,
}


def call(request: CompletionRequest, model: str, capabilities: Capabilities, sampling: Mapping[str, float]) -> Call:
    """The HTTP request that asks ``request``. The system text is marked for the cache: it is what siblings share."""
    system: dict[str, object] = {"type": "text", "text": request.system}
    if capabilities.caching is Caching.EXPLICIT:
        system["cache_control"] = {"type": "ephemeral"}
    body: dict[str, object] = {
        "model": model,
        "max_tokens": request.output_tokens_max,
        "messages": [
            {"role": message.role.value, "content": message.text} for message in with_schema(request, capabilities)
        ],
    }
    if request.system:
        body["system"] = [system]
    body |= {name: value for name, value in sampling.items() if name in capabilities.sampling}
    if request.schema and capabilities.schema in (SchemaOutput.SCHEMA, SchemaOutput.UNKNOWN):
        body["output_config"] = {"format": {"type": "json_schema", "schema": json.loads(request.schema)}}
    if capabilities.streaming:
        body["stream"] = True
    version = ("anthropic-version", VERSION)
    return Call(path="/messages", body=json.dumps(body).encode(), headers=(version,), streams=capabilities.streaming)


def whole(draft: Draft, answer: Mapping[str, object]) -> None:
    """Take in an answer that did not stream."""
    blocks = answer.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict):
            _part(draft, block)
    _message(draft, answer)
    draft.end = _end(answer)


def event(draft: Draft, name: str, told: Mapping[str, object]) -> None:
    """Take in an event of a stream."""
    kind = told.get("type", name)
    if kind == "message_start":
        message = told.get("message")
        _message(draft, message if isinstance(message, dict) else {})
    elif kind in ("content_block_start", "content_block_delta"):
        part = told.get("content_block", told.get("delta"))
        _part(draft, part if isinstance(part, dict) else {})
    elif kind == "message_delta":
        _counts(draft, told.get("usage"))
        delta = told.get("delta")
        draft.end = _end(delta if isinstance(delta, dict) else {}) or draft.end


def ends(draft: Draft, name: str, data: str) -> bool:  # noqa: ARG001 - as every protocol's
    """Whether this event is the last."""
    return name == "message_stop" or data.strip() == "[DONE]"


def _message(draft: Draft, message: Mapping[str, object]) -> None:
    model = message.get("model")
    if isinstance(model, str) and model:
        draft.model = model
    _counts(draft, message.get("usage"))


def _counts(draft: Draft, usage: object) -> None:
    """Counts are cumulative, and those of the prompt exclude each other: here they add up to all of it. What a stream
    counts at its beginning as written says nothing of what follows.
    """
    if not isinstance(usage, dict):
        return
    fresh, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    written, cached = count(usage.get("cache_creation_input_tokens")), count(usage.get("cache_read_input_tokens"))
    if fresh is not None:
        draft.cache_write_tokens, draft.cached_tokens = written or 0, cached or 0
        draft.input_tokens = fresh + (written or 0) + (cached or 0)
    if output is not None:
        draft.output_tokens = output


def _part(draft: Draft, part: Mapping[str, object]) -> None:
    text = part.get("text")
    if part.get("type") in ("text", "text_delta") and isinstance(text, str) and text:
        draft.says(text)
    elif part.get("type") in ("thinking", "thinking_delta", "redacted_thinking"):
        draft.thinks()


def _end(message: Mapping[str, object]) -> End | None:
    reason = message.get("stop_reason")
    return _ENDS.get(reason, End.OWN) if isinstance(reason, str) and reason else None
