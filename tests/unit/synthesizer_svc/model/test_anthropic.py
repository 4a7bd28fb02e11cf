"""Messages: what is sent, and what answers amount to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from synthesizer_svc.model import ModelErrorCode
from synthesizer_svc.model import anthropic as protocol
from synthesizer_svc.model.capabilities import Caching, SchemaOutput
from synthesizer_svc.model.presets import PRESETS
from tests.fakes.endpoint_answers import TEXT
from tests.unit.synthesizer_svc.model.questions import MESSAGES, QUESTION, SCHEMA, read_object, read_stream

VENDOR = PRESETS["anthropic"]
USAGE = {"input_tokens": 20, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 50, "output_tokens": 7}


def body(question=QUESTION, capabilities=VENDOR, **sampling):
    return json.loads(protocol.call(question, "m", capabilities, sampling).body)


def message(text=TEXT, reason="end_turn", **more):
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    told = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": content}
    return told | {"stop_reason": reason, "stop_sequence": None, "usage": USAGE} | more


def named(kind, **more):
    return (kind, {"type": kind, **more})


STARTED = named(
    "message_start", message=message() | {"content": [], "stop_reason": None, "usage": USAGE | {"output_tokens": 1}}
)
OPENED = named("content_block_start", index=0, content_block={"type": "text", "text": ""})
ENDED = named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 7})
STOPPED = named("message_stop")


def piece(text):
    return named("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def test_a_question_is_sent_with_its_prefix_marked_for_the_cache():
    call = protocol.call(QUESTION, "m", VENDOR, {})
    assert (call.path, call.headers) == ("/messages", (("anthropic-version", "2023-06-01"),))
    assert json.loads(call.body) == {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "You write kernels.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "Write one."}],
        "stream": True,
    }


def test_seeds_and_sampling_fields_which_it_refuses_are_not_sent():
    assert not {"seed", "temperature", "top_p", "top_k"} & set(body(temperature=0.5))


def test_a_prefix_is_marked_only_where_marks_are_known():
    assert "cache_control" not in body(capabilities=replace(VENDOR, caching=Caching.AUTOMATIC))["system"][0]


def test_a_schema_is_a_field_or_told_at_the_end():
    asked = replace(QUESTION, schema=SCHEMA)
    assert body(asked)["output_config"]["format"] == {"type": "json_schema", "schema": json.loads(SCHEMA)}
    told = body(asked, replace(VENDOR, schema=SchemaOutput.NONE))
    assert "output_config" not in told
    assert told["messages"][-1]["content"].endswith(SCHEMA)


def test_a_stream_and_an_object_amount_to_the_same():
    thought = named("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
    streamed = read_stream(
        STARTED, named("ping"), thought, OPENED, piece(TEXT[:6]), piece(TEXT[6:]), ENDED, STOPPED, capabilities=MESSAGES
    )
    assert streamed == read_object(message(), capabilities=MESSAGES)
    assert (streamed.text, streamed.model, streamed.truncated) == (TEXT, "m-1", False)


def test_tokens_of_the_prompt_add_up_because_they_exclude_each_other():
    usage = read_object(message(), capabilities=MESSAGES).usage
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens) == (100, 50, 30, 7)
    assert usage.cost_micro == 20 * 3 + 50 * 0.3 + 30 * 3.75 + 7 * 15 + 0.5  # rounded up


@pytest.mark.parametrize(
    ("reason", "truncated", "refused"),
    [("end_turn", False, False), ("stop_sequence", False, False), ("max_tokens", True, False),
     ("model_context_window_exceeded", True, False), ("refusal", False, True), ("a new reason", False, False)],
)  # fmt: skip
def test_an_answer_says_how_it_ended(reason, truncated, refused):
    answer = read_object(message(reason=reason), capabilities=MESSAGES)
    assert (answer.truncated, answer.refused) == (truncated, refused)


@pytest.mark.parametrize("reason", ["pause_turn", "tool_use"])
def test_an_answer_that_waits_for_tools_is_none(reason):
    assert read_object(message(reason=reason), capabilities=MESSAGES).code is ModelErrorCode.ANSWER


def test_a_refusal_without_text_is_a_failure():
    told = message(reason="refusal", content=[])
    assert read_object(told, capabilities=MESSAGES).code is ModelErrorCode.REFUSED


def test_a_stream_that_was_cut_is_estimated_at_all_it_was_allowed_and_its_prompt_is_counted():
    fault = read_stream(STARTED, OPENED, piece("he"), capabilities=MESSAGES)
    assert (fault.code, fault.again) == (ModelErrorCode.ANSWER, True)
    assert (fault.usage.input_tokens, fault.usage.output_tokens, fault.usage.estimated) == (100, 100, True)


def test_an_error_in_the_stream_ends_it():
    told = named("error", error={"type": "overloaded_error", "message": "Overloaded"})
    fault = read_stream(STARTED, OPENED, piece("he"), told, piece("llo"), ENDED, capabilities=MESSAGES)
    assert (fault.code, fault.again, fault.detail) == (ModelErrorCode.ENDPOINT, True, "Overloaded")


def test_a_model_that_thought_is_estimated_at_all_it_was_allowed_when_nobody_counts():
    usage = read_object(message(usage=None), capabilities=MESSAGES).usage
    assert (usage.output_tokens, usage.estimated) == (100, True)


def test_what_a_stream_counts_at_its_beginning_is_not_all_that_it_writes():
    uncounted = named("message_delta", delta={"stop_reason": "end_turn"})
    usage = read_stream(STARTED, OPENED, piece("hello"), uncounted, STOPPED, capabilities=MESSAGES).usage
    assert (usage.input_tokens, usage.estimated) == (100, True)
    assert usage.output_tokens >= len("hello")
