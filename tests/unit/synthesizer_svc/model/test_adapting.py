"""An endpoint that refuses a field is asked without it."""

from __future__ import annotations

import json

import pytest

from synthesizer_svc.model.adapting import NOT_QUITE, adapted, shorter
from synthesizer_svc.model.capabilities import Caching, Capabilities, Protocol, SchemaOutput, Support

SENT = {
    "max_tokens": 16_000,
    "seed": 1,
    "stream_options": {},
    "response_format": {},
    "temperature": 0.5,
    "top_p": 0.9,
}
BEFORE = Capabilities(schema=SchemaOutput.SCHEMA)


def less(refused, before=BEFORE, sent=SENT):
    after = adapted(before, refused, json.dumps(sent).encode())
    if after is None:
        return None
    return {name: getattr(after, name) for name in after.__slots__ if getattr(after, name) != getattr(before, name)}


@pytest.mark.parametrize(
    ("refused", "change"),
    [
        ("seed: Extra inputs are not permitted", {"seed": Support.NO}),
        ("Unrecognized request argument supplied: stream_options", {"stream_usage": False}),
        ("Unsupported value: 'temperature' does not support 0.5 with this model", {"sampling": ("top_p",)}),
        ("temperature and top_p: Extra inputs are not permitted", {"sampling": ()}),
        ("response_format.type: json_schema is not supported", {"schema": SchemaOutput.OBJECT}),
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            {"limit_field": "max_completion_tokens"},
        ),
        ("max_tokens is too large: 16000. This model supports at most 4096 tokens", {"output_tokens": 4096}),
        ("max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens", {"output_tokens": 8192}),
        ("the question is exceedingly bad", None),
        ("tools: not supported", None),
    ],
)
def test_what_is_refused_is_left_out(refused, change):
    assert less(refused) == change


def test_a_field_that_was_not_sent_cannot_be_left_out():
    assert less("seed: no", sent={"max_tokens": 100}) is None
    assert less("temperature: no", sent={"max_tokens": 100}) is None


def test_a_schema_is_asked_for_less_and_less():
    once = less("response_format: no", Capabilities(schema=SchemaOutput.OBJECT))
    assert once == {"schema": SchemaOutput.NONE}
    messages = Capabilities(protocol=Protocol.ANTHROPIC)
    assert less("output_config: no", messages, {"max_tokens": 9, "output_config": {}}) == {"schema": SchemaOutput.NONE}


def test_marks_for_the_cache_are_left_out():
    messages = Capabilities(protocol=Protocol.ANTHROPIC, caching=Caching.EXPLICIT)
    assert less("system.0.cache_control: no", messages, {"max_tokens": 9}) == {"caching": Caching.NONE}


TOO_MUCH = {
    "vLLM": (
        "'max_tokens' or 'max_completion_tokens' is too large: 16000. This model's maximum context length is 8192 "
        "tokens and your request has 300 input tokens (16000 > 8192 - 300)."
    ),
    "vendors": (
        "This model's maximum context length is 8192 tokens. However, you requested 16300 tokens (300 in the messages, "
        "16000 in the completion). Please reduce the length of the messages or completion."
    ),
    "SGLang": (
        "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
        "16300 tokens: 300 tokens from the input messages and 16000 tokens for the completion."
    ),
    "a gateway": (
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 16300 tokens (300 of text "
        "input, 16000 in the output)."
    ),
}
"""Of 8192 tokens, 300 of them the prompt's."""
READ_NO_FURTHER = (
    "You passed 16769 input tokens and requested 16000 output tokens. However, the model's context length is only "
    "32768 tokens, resulting in a maximum input length of 16768 tokens."
)


@pytest.mark.parametrize("server", TOO_MUCH)
def test_an_answer_too_long_for_what_the_prompt_leaves_of_the_context_is_asked_for_shorter(server):
    assert shorter(TOO_MUCH[server], 16_000) == 8192 - 300 - NOT_QUITE


def test_a_count_of_no_more_than_was_too_much_says_nothing_of_the_prompt_so_half_is_asked_for():
    assert shorter(READ_NO_FURTHER, 16_000) == 8_000 - NOT_QUITE


@pytest.mark.parametrize(
    "refused",
    [
        TOO_MUCH["vendors"].replace("(300 in", "(8100 in"),
        "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
    ],
)
def test_a_prompt_that_leaves_no_room_or_is_not_counted_is_not_asked_again(refused):
    assert shorter(refused, 16_000) == 0


def test_asking_for_ever_shorter_answers_ends():
    asked, limit = 0, 16_000
    while limit:
        told = f"You passed {32_769 - limit} input tokens. However, the model's context length is only 32768 tokens"
        limit, asked = shorter(told, limit), asked + 1
    assert asked < 8
