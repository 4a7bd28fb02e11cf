"""An endpoint that refuses a field is asked without it."""

from __future__ import annotations

import json

import pytest

from synthesizer_svc.model.adapting import adapted
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
