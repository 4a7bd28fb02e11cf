"""OpenAI's chat completions, as vendors, vLLM, SGLang, llama.cpp and Ollama speak them (pure).

``n`` is never sent: servers bill several choices in several ways, and one question asked twice is two requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from synthesizer_svc.model import CompletionRequest
from synthesizer_svc.model.capabilities import Capabilities, SchemaOutput, Support
from synthesizer_svc.model.draft import Draft, End, count
from synthesizer_svc.model.exchange import Call
from synthesizer_svc.model.wording import with_schema

DONE = "[DONE]"
_ENDS = {
    "stop": End.OWN,
    "eos": End.OWN,
    "length": End.LIMIT,
    "content_filter": End.FILTER,
    "abort": End.ABORTED,
    "error": End.ABORTED,
}


def call(request: CompletionRequest, model: str, capabilities: Capabilities, sampling: Mapping[str, float]) -> Call:
    """The HTTP request that asks ``request``."""
    prefix = {"role": "system", "content": request.system}
    messages = [{"role": message.role.value, "content": message.text} for message in with_schema(request, capabilities)]
    body: dict[str, object] = {
        "model": model,
        "messages": [prefix, *messages] if request.system else messages,
        capabilities.limit_field: request.output_tokens_max,
    }
    body |= {name: value for name, value in sampling.items() if name in capabilities.sampling}
    if capabilities.seed is not Support.NO:
        body["seed"] = request.seed
    if request.schema and capabilities.schema in (SchemaOutput.SCHEMA, SchemaOutput.UNKNOWN):
        schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.schema and capabilities.schema is SchemaOutput.OBJECT:
        body["response_format"] = {"type": "json_object"}
    if capabilities.streaming:
        body["stream"] = True
        if capabilities.stream_usage:
            body["stream_options"] = {"include_usage": True}
    return Call(path="/chat/completions", body=json.dumps(body).encode(), streams=capabilities.streaming)


def whole(draft: Draft, answer: Mapping[str, object]) -> None:
    """Take in an answer that did not stream."""
    choice = _first_choice(answer)
    if choice is not None:
        message = choice.get("message")
        _said(draft, message if isinstance(message, dict) else {})
        draft.end = _end(choice) or End.OWN
    _common(draft, answer)


def event(draft: Draft, name: str, told: Mapping[str, object]) -> None:  # noqa: ARG001 - as every protocol's
    """Take in an event of a stream."""
    choice = _first_choice(told)
    if choice is not None:
        delta = choice.get("delta")
        _said(draft, delta if isinstance(delta, dict) else {})
        draft.end = _end(choice) or draft.end
    _common(draft, told)


def ends(draft: Draft, name: str, data: str) -> bool:  # noqa: ARG001 - as every protocol's
    """Whether ``data`` is the mark after which nothing comes; an answer without a reason to have ended has one then."""
    if data.strip() != DONE:
        return False
    if draft.end is None and (draft.text or draft.refusal):
        draft.end = End.OWN
    return True


def _common(draft: Draft, told: Mapping[str, object]) -> None:
    model = told.get("model")
    if isinstance(model, str) and model:
        draft.model = model
    usage = told.get("usage")
    if not isinstance(usage, dict):
        return
    prompt, completion = _part(usage, "prompt_tokens_details"), _part(usage, "completion_tokens_details")
    draft.input_tokens = _latest(draft.input_tokens, usage.get("prompt_tokens"))
    draft.output_tokens = _latest(draft.output_tokens, usage.get("completion_tokens"))
    draft.cached_tokens = _latest(draft.cached_tokens, prompt.get("cached_tokens"))
    draft.cache_write_tokens = _latest(draft.cache_write_tokens, prompt.get("cache_write_tokens"))
    reasoning = completion.get("reasoning_tokens", usage.get("reasoning_tokens"))  # at top level: SGLang
    draft.reasoning_tokens = _latest(draft.reasoning_tokens, reasoning)
    draft.output_tokens = _with_reasoning(draft, count(usage.get("total_tokens")))


def _with_reasoning(draft: Draft, total: int | None) -> int | None:
    """Tokens that are billed as written. Some vendors count reasoning beside ``completion_tokens`` (xAI, Gemini), and
    only the total, or a part that is larger than its whole, shows it.
    """
    written, reasoning = draft.output_tokens, draft.reasoning_tokens or 0
    if not written:
        return written
    beside = total - draft.input_tokens if total is not None and draft.input_tokens else 0
    return max(written, beside, written + reasoning if reasoning > written else 0)


def _part(usage: Mapping[str, object], name: str) -> Mapping[str, object]:
    part = usage.get(name)
    return part if isinstance(part, dict) else {}


def _latest(before: int | None, told: object) -> int | None:
    now = count(told)
    return before if now is None else now


def _first_choice(told: Mapping[str, object]) -> Mapping[str, object] | None:
    choices = told.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return None


def _said(draft: Draft, message: Mapping[str, object]) -> None:
    for text in _texts(message.get("content")):
        draft.says(text)
    for text in _texts(message.get("refusal")):
        draft.declines(text)
    if message.get("reasoning") or message.get("reasoning_content"):
        draft.thinks()


def _texts(content: object) -> list[str]:
    """Text is a string, null, or a list of parts."""
    if isinstance(content, str):
        return [content] if content else []
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str)]


def _end(choice: Mapping[str, object]) -> End | None:
    reason = choice.get("finish_reason")
    return _ENDS.get(reason, End.OWN) if isinstance(reason, str) and reason else None
