"""A secret is shown by nothing but the call that gives it."""

from __future__ import annotations

import json
import pickle

import pytest

from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.secret import Secret

KEY = "sk-planted-0123456789"


@pytest.mark.parametrize("write", [str, repr, "{}".format, "{!r}".format, "%s".__mod__, lambda it: repr([{"a": it}])])
def test_nothing_that_writes_it_shows_it(write):
    settings = EndpointSettings(name="e", url="http://127.0.0.1", model="m", key=Secret(KEY))
    assert KEY not in write(settings.key)
    assert KEY not in write(settings)


def test_it_is_neither_pickled_nor_written_to_json():
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError):
        json.dumps(Secret(KEY))


def test_it_is_taken_out_of_texts_unless_it_is_a_placeholder():
    assert Secret(KEY).hide(f"bad key {KEY}!") == "bad key …!"
    assert Secret("none").hide("none of them") == "none of them"


@pytest.mark.parametrize("cut", ["", "…"])
def test_its_beginning_is_taken_out_where_a_text_was_cut_inside_it(cut):
    assert Secret(KEY).hide(f"bad key {KEY[:15]}{cut}") == "bad key …"
    assert Secret(KEY).hide(f"keys begin with {KEY[:3]}{cut}") == f"keys begin with {KEY[:3]}{cut}"
    assert Secret(KEY).hide(f"the key is {KEY}{cut}") == f"the key is …{cut}"


def test_it_is_taken_out_as_json_and_pages_write_it():
    secret = Secret("ke/planted+0123456789")
    assert secret.hide('{"error": "no key ke\\/planted+0123456789"}') == '{"error": "no key …"}'
    assert secret.hide(r'{"error": "no key ke\u002Fplanted\u002b0123456789"}') == '{"error": "no key …"}'
    assert secret.hide("/login?key=ke%2Fplanted%2B0123456789&again") == "/login?key=…&again"


@pytest.mark.parametrize(
    "cut",
    [
        "ke/planted+01",
        "ke\\/planted+01",
        r"ke\u002fplanted\u002B01",
        r"ke\u002fplanted\u00",
        "ke\\/planted\\",
        "ke%2Fplanted%2",
    ],
)
@pytest.mark.parametrize("mark", ["", "…"])
def test_a_beginning_is_taken_out_however_it_is_written_and_wherever_it_was_cut(cut, mark):
    assert Secret("ke/planted+0123456789").hide(f"bad key {cut}{mark}") == "bad key …"


def test_equal_secrets_are_equal():
    assert Secret(KEY) == Secret(KEY) != Secret("other")
    assert len({Secret(KEY), Secret(KEY)}) == 1
