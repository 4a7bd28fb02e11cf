"""Chat completions: what is sent, and what the answers of different servers amount to."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthesizer_svc.model import Completion, ModelErrorCode
from synthesizer_svc.model import openai as protocol
from synthesizer_svc.model.capabilities import Capabilities, Reasoning, SchemaOutput, Support
from synthesizer_svc.model.faults import Fault
from synthesizer_svc.model.presets import PRESETS
from tests.fakes.endpoint_answers import TEXT, USAGE, completion, delta
from tests.unit.synthesizer_svc.model.questions import (
    QUESTION,
    REPAIR,
    SCHEMA,
    SHOWN,
    read,
    read_object,
    read_stream,
    stream,
)

ANSWERED = replace(QUESTION, schema=SCHEMA)


def body(question=QUESTION, capabilities=SHOWN, **sampling):
    return json.loads(protocol.call(question, "m", capabilities, sampling).body)


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_a_question_is_sent_with_its_limits_and_seed():
    call = protocol.call(QUESTION, "m", SHOWN, {})
    assert call.path == "/chat/completions"
    assert json.loads(call.body) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "You write kernels."},
            {"role": "user", "content": "Write one."},
        ],
        "max_tokens": 100,
        "seed": 7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_repair_turn_is_the_same_conversation_with_two_messages_more():
    first, again = body(), body(replace(QUESTION, messages=REPAIR))
    assert again["messages"][: len(first["messages"])] == first["messages"]
    assert [message["role"] for message in again["messages"]] == ["system", "user", "assistant", "user"]


def test_an_empty_system_text_is_not_sent():
    assert [m["role"] for m in body(replace(QUESTION, system=""))["messages"]] == ["user"]


def test_several_choices_are_never_asked_for():
    assert all("n" not in body(capabilities=preset) for preset in PRESETS.values())


def test_what_an_endpoint_does_not_accept_is_not_sent():
    capabilities = Capabilities(
        sampling=("top_p",), seed=Support.NO, streaming=False, limit_field="max_completion_tokens"
    )
    sent = body(capabilities=capabilities, temperature=0.5, top_p=0.9)
    assert set(sent) == {"model", "messages", "max_completion_tokens", "top_p"}


def test_a_schema_is_a_field_where_decoding_follows_it():
    schema = body(ANSWERED)["response_format"]["json_schema"]
    assert (schema["schema"], schema["strict"]) == (json.loads(SCHEMA), True)


@pytest.mark.parametrize(
    ("kind", "format_"), [(SchemaOutput.OBJECT, {"type": "json_object"}), (SchemaOutput.NONE, None)]
)
def test_a_schema_is_told_at_the_end_where_decoding_does_not_follow_it(kind, format_):
    sent = body(ANSWERED, Capabilities(schema=kind))
    assert sent.get("response_format") == format_
    assert sent["messages"][0] == body()["messages"][0]
    assert sent["messages"][-1]["content"].startswith("Write one.")
    assert sent["messages"][-1]["content"].endswith(SCHEMA)


# --- answers ----------------------------------------------------------------------------------------------------------

FIRST, LAST = delta(), delta(finish="stop")
COUNTS = {"id": "c", "model": "m-1", "choices": [], "usage": USAGE}


def test_a_stream_and_an_object_amount_to_the_same():
    streamed = read_stream(FIRST, delta(TEXT[:5]), delta(TEXT[5:]), LAST, COUNTS, "[DONE]")
    assert isinstance(streamed, Completion)
    assert streamed == read_object(completion())
    assert (streamed.text, streamed.model) == (TEXT, "m-1")
    assert (streamed.usage.input_tokens, streamed.usage.output_tokens, streamed.usage.estimated) == (20, 7, False)


@given(st.lists(st.integers(0, 1200), max_size=20))
def test_cuts_anywhere_change_nothing(places):
    data = stream([FIRST, delta(TEXT), LAST, COUNTS, "[DONE]"])
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(edges)]
    assert read(*chunks, kind="text/event-stream") == read(data, kind="text/event-stream")
    assert read(*chunks, kind="") == read(data, kind="text/event-stream")


@given(st.binary(max_size=300), st.sampled_from(["application/json", "text/event-stream", "text/html", ""]))
def test_no_bytes_break_the_reading(data, kind):
    assert isinstance(read(data, kind=kind), Fault)


NAMES = (
    *(
        "choices",
        "message",
        "delta",
        "content",
        "usage",
        "prompt_tokens",
        "completion_tokens",
        "finish_reason",
        "error",
    ),
    *("code", "type", "index", "model", "refusal", "prompt_tokens_details", "cached_tokens", "text", "object"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JSON)
def test_no_object_breaks_the_reading(told):
    for answer in (read_object(told), read_stream(told, "[DONE]"), read_object(told, status=400)):
        assert isinstance(answer, (Completion, Fault))
        answer.usage  # noqa: B018 - is there


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (completion([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]), "ab"),
        (completion("<think>hm\n</think>\n\nyes"), "yes"),
        (completion("hm\n</think>\n\nyes"), "yes"),
        (completion("a <think> in the text"), "a <think> in the text"),
        (completion("\ud83d\ude42 \ud800"), "🙂 �"),
        (completion("yes") | {"surprise": [1]}, "yes"),
    ],
    ids=["parts", "thoughts", "thoughts the template began", "no thoughts", "surrogates", "unknown fields"],
)
def test_text_is_what_the_model_says_to_the_user(answer, text):
    assert read_object(answer).text == text


def test_surrogates_cut_apart_by_a_stream_are_one_character():
    assert read_stream(delta("\ud83d"), delta("\ude42"), LAST, "[DONE]").text == "🙂"


def test_only_the_first_choice_counts():
    other = {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}
    answer = read_stream(delta("a"), {"choices": [other]}, LAST, COUNTS, "[DONE]")
    assert (answer.text, answer.truncated) == ("a", False)


@pytest.mark.parametrize("reason", ["length"])
def test_an_answer_that_met_a_limit_is_truncated(reason):
    assert read_object(completion(finish=reason)).truncated


def test_thoughts_that_never_ended_are_a_truncated_answer_without_text():
    answer = read_object(completion("<think>hm, let me", "length"))
    assert (answer.text, answer.truncated) == ("", True)


def test_a_filter_that_left_text_refused_and_one_that_left_none_is_a_failure():
    assert read_object(completion("half", "content_filter")).refused
    fault = read_object(completion(None, "content_filter"))
    assert (fault.code, fault.again, fault.usage.output_tokens) == (ModelErrorCode.REFUSED, False, 7)


def test_a_refusal_is_told_in_its_own_words():
    answer = completion(None)
    answer["choices"][0]["message"]["refusal"] = "I can't."
    assert (read_object(answer).text, read_object(answer).refused) == ("I can't.", True)


# --- counts -----------------------------------------------------------------------------------------------------------


def test_cached_and_reasoning_tokens_are_parts_of_the_others():
    usage = {
        "prompt_tokens": 2000,
        "completion_tokens": 90,
        "prompt_tokens_details": {"cached_tokens": 1500, "cache_write_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 60},
    }
    told = read_object(completion(usage=usage)).usage
    assert (told.input_tokens, told.cached_tokens, told.cache_write_tokens) == (2000, 1500, 100)
    assert (told.output_tokens, told.reasoning_tokens) == (90, 60)
    assert told.cost_micro == 400 * 3 + 1500 * 0.3 + 100 * 3.75 + 90 * 15


def test_reasoning_tokens_at_the_top_of_usage_count():
    assert read_object(completion(usage=USAGE | {"reasoning_tokens": 5})).usage.reasoning_tokens == 5


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("counts", "written"),
    [
        ({"total_tokens": 527, "completion_tokens_details": {"reasoning_tokens": 500}}, 507),
        ({"total_tokens": 127}, 107),
        ({"total_tokens": None, "completion_tokens_details": {"reasoning_tokens": 500}}, 507),
        ({"total_tokens": 27, "completion_tokens_details": {"reasoning_tokens": 5}}, 7),
        ({"total_tokens": 3}, 7),
        ({"total_tokens": "many"}, 7),
    ],
)
def test_reasoning_that_is_counted_beside_the_answer_is_paid_for(counts, written, streamed):
    usage = USAGE | counts
    chunks = (delta(TEXT), delta(finish="stop"), {"choices": [], "usage": usage}, {"choices": [], "usage": usage})
    told = read_stream(*chunks, "[DONE]") if streamed else read_object(completion(usage=usage))
    assert (told.usage.output_tokens, told.usage.estimated) == (written, False)
    assert told.usage.cost_micro == 20 * 3 + written * 15


@pytest.mark.parametrize("part", ["cached_tokens", "cache_write_tokens"])
def test_a_prompt_of_fewer_tokens_than_its_own_parts_is_estimated(part):
    usage = read_object(completion(usage=USAGE | {"prompt_tokens_details": {part: 10**9}})).usage
    assert usage.estimated
    assert (usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens) == (0, 0, 7)
    assert len(b"You write kernels.Write one.") <= usage.input_tokens < 1000


@pytest.mark.parametrize(
    "counts", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": "9"}, [1]]
)
def test_counts_that_are_missing_are_estimated_and_never_too_low(counts):
    usage = read_object(completion(usage=counts)).usage
    assert usage.estimated
    assert usage.input_tokens >= len(b"You write kernels.Write one.")
    assert usage.output_tokens >= len(TEXT.encode())


def test_a_count_of_nothing_for_a_refusal_or_a_thought_is_none():
    nothing = {"prompt_tokens": 20, "completion_tokens": 0}
    for said in ({"refusal": "I can't."}, {"reasoning_content": "hm", "content": ""}):
        answer = completion(None, "length", usage=nothing)
        answer["choices"][0]["message"] |= said
        assert (read_object(answer).usage.output_tokens > 0, read_object(answer).usage.estimated) == (True, True)


@pytest.mark.parametrize("nonsense", [-1, True, 2**70, 1.5, "7", None])
def test_a_count_that_is_none_is_estimated(nonsense):
    usage = read_object(completion(usage=USAGE | {"completion_tokens": nonsense})).usage
    assert (usage.input_tokens, usage.estimated) == (20, True)
    assert usage.output_tokens >= len(TEXT.encode())


@pytest.mark.parametrize("reasoning", [Reasoning.HIDDEN, Reasoning.UNKNOWN])
def test_a_model_that_may_think_in_secret_is_estimated_at_all_it_was_allowed(reasoning):
    usage = read_object(completion(usage=None), capabilities=Capabilities(reasoning=reasoning)).usage
    assert usage.output_tokens == QUESTION.output_tokens_max


def test_a_stream_that_was_cut_is_estimated_at_all_it_was_allowed():
    fault = read_stream(FIRST, delta("he"))
    assert (fault.code, fault.again) == (ModelErrorCode.ANSWER, True)
    assert (fault.usage.output_tokens, fault.usage.estimated) == (100, True)
    assert fault.usage.cost_micro > 0


def test_an_endpoint_that_counts_more_than_was_allowed_is_believed():
    usage = read_object(completion(usage=USAGE | {"completion_tokens": 5000})).usage
    assert (usage.output_tokens, usage.estimated) == (5000, False)


def test_a_count_that_more_of_the_answer_follows_is_none():
    usage = read_stream(delta("he", usage=USAGE), delta("llo"), delta(finish="stop"), "[DONE]").usage
    assert (usage.input_tokens, usage.estimated) == (20, True)
    assert usage.output_tokens >= len("hello")
    counted = [delta("he", usage=USAGE | {"completion_tokens": 1}), delta("llo", usage=USAGE), delta(finish="stop")]
    assert (read_stream(*counted).usage.output_tokens, read_stream(*counted).usage.estimated) == (7, False)


def test_a_prompt_that_nobody_counts_is_estimated_as_if_all_of_it_were_written_to_a_cache():
    usage = read_object(completion(usage={"completion_tokens": 7})).usage
    assert usage.cost_micro == -(-(usage.input_tokens * 3.75 + 7 * 15) // 1)
