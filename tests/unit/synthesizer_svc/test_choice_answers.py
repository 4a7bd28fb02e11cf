"""A choice is one JSON object wherever it stands, and nothing that only looks like one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthesizer_svc.answer_text import Unparsable, choice_json

CHOICE = {"because": "why {not}", "changes": [{"decision": "g0.unroll", "value": 4}]}
TEXT = json.dumps(CHOICE)

TAKEN = {
    "alone": TEXT,
    "spread out": json.dumps(CHOICE, indent=2),
    "in a fence": f"```json\n{TEXT}\n```",
    "between sentences": f"I choose {TEXT} because of that.",
    "after thinking": f"<think>maybe {{}}</think>{TEXT}",
    "after another object": f'{{"note": 1}} {TEXT}',
    "after a brace": f"a {{ b {TEXT}",
    "twice the same": f"{TEXT}\nIn full: {json.dumps(CHOICE, indent=1)}",
}

REFUSED = {
    "nothing": ("", "empty"),
    "prose": ("Unroll by four.", "bad_json"),
    "a refusal": ("I'm sorry, I can't.", "refused"),
    "another object": ('{"answer": 4}', "bad_json"),
    "a list": ("[1, 2]", "bad_json"),
    "two choices": (f'{TEXT} or {{"changes": []}}', "several_choices"),
    "half an object": (TEXT[:-3], "bad_json"),
    "single quotes": (TEXT.replace('"', "'"), "bad_json"),
    "a name twice": ('{"changes": [], "changes": [1]}', "bad_json"),
    "no number": ('{"changes": NaN}', "bad_json"),
    "inside another object": (f'{{"outer": {TEXT}}}', "bad_json"),
    "a value that is too deep to be walked through": (f'{{"changes": {"[" * 500}{"]" * 500}}}', "bad_json"),
    "objects in objects": ('{"changes":' + '{"a":' * 300 + "1" + "}" * 301, "bad_json"),
    "deep nesting": ('{"changes":' * 5_000, "too_long"),
    "a flood": ("{" * 100_000, "too_long"),
}


@pytest.mark.parametrize("text", TAKEN.values(), ids=TAKEN)
def test_the_object_is_taken_from_where_it_stands(text):
    assert choice_json.parse(text, key="changes") == CHOICE


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused_with_its_reason(text, code):
    found = choice_json.parse(text, key="changes")
    assert isinstance(found, Unparsable), found
    assert found.code == code


def test_a_cut_answer_is_truncated_unless_the_object_was_complete():
    assert choice_json.parse(TEXT[:-3], key="changes", truncated=True).code == "truncated"
    assert choice_json.parse(TEXT + " and so", key="changes", truncated=True) == CHOICE


@settings(max_examples=150)
@given(st.lists(st.sampled_from(["{", "}", "[", "]", '"changes"', ":", ",", "1", '"', "\\", "`", "\n", TEXT])))
def test_no_text_breaks_the_reader(pieces):
    found = choice_json.parse("".join(pieces), key="changes")
    assert isinstance(found, Unparsable) or "changes" in found


@pytest.mark.parametrize("piece", ["{", '{"changes":', "[{", '"', '{"a":{}', "\\"])
def test_hostile_repetition_is_read_in_linear_time(piece):
    assert isinstance(choice_json.parse(piece * (39_000 // len(piece)), key="changes"), Unparsable)
