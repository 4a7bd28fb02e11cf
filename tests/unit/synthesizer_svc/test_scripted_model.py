"""The scripted model and the choice of a model by URL."""

from __future__ import annotations

import asyncio
import json

import pytest

from shared import ids
from shared.errors import UserError
from synthesizer_svc.model import CompletionRequest, Message, ModelError, Role
from synthesizer_svc.model.opening import scripted as open_model


def ask(model, user="u"):
    request = CompletionRequest(
        system="s", messages=(Message(role=Role.USER, text=user),), seed=1, output_tokens_max=10, deadline_s=1.0
    )
    return asyncio.run(model.complete(request))


def scripted(tmp_path, *answers):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"answers": answers}))
    return open_model(f"scripted:{path}")


def test_answers_come_in_order_with_their_usage(tmp_path):
    model = scripted(tmp_path, {"text": "a", "input_tokens": 3}, {"text": "b", "truncated": True})
    first, second = ask(model), ask(model)
    assert (first.text, first.usage.input_tokens, first.truncated) == ("a", 3, False)
    assert (second.text, second.truncated) == ("b", True)


def test_an_answer_bound_to_a_prompt_is_given_to_that_prompt_only_and_again(tmp_path):
    model = scripted(tmp_path, {"text": "bound", "prompt_hash": ids.content_hash(b"s\n\nthis")}, {"text": "free"})
    assert ask(model, "this").text == "bound"
    assert ask(model, "other").text == "free"
    assert ask(model, "this").text == "bound"


def test_a_script_that_ran_out_is_a_spent_budget(tmp_path):
    with pytest.raises(ModelError, match="budget"):
        ask(scripted(tmp_path))


def test_a_scripted_failure_is_raised_with_its_code(tmp_path):
    with pytest.raises(ModelError) as caught:
        ask(scripted(tmp_path, {"error": "endpoint", "text": "503"}))
    assert (caught.value.code, caught.value.detail) == ("endpoint", "503")


@pytest.mark.parametrize("url", ["", "none:", "none"])
def test_no_model_is_no_error(url):
    assert open_model(url) is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("gopher:x", "unknown model scheme `gopher`"),
        ("sk-secret", "MODEL_URL: is no URL"),
        ("scripted:/no/such/file", "cannot be read"),
    ],
)
def test_a_model_that_cannot_be_used_is_one_clear_line(url, says):
    with pytest.raises(UserError, match=says) as caught:
        open_model(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"answers": 3}', '{"answers": [{"txt": 1}]}', '{"answers": [{"text": 1}]}']
)
def test_a_broken_script_is_one_clear_line(tmp_path, text):
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(UserError, match="is not a script of answers"):
        open_model(f"scripted:{path}")
