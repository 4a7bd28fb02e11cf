"""Secrets are taken out of texts by their names, by their places, and because somebody said so."""

from __future__ import annotations

import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.redaction import Redaction, Spelled, holds_a_secret, never_show

KEY = 'ke/planted+"0123456789"=='


def test_what_is_said_to_be_secret_is_taken_out_of_what_is_written_afterwards():
    redact, planted = Redaction({}), "planted-after-the-fact"
    assert redact(f"the key is {planted}") == f"the key is {planted}"
    assert not holds_a_secret(f"Bearer {planted}")
    never_show(planted)
    assert redact(f"the key is {planted}!") == "the key is …!"
    assert holds_a_secret(f"Bearer {planted}")


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        json.dumps(KEY),
        json.dumps({"message": f"bad key {KEY}"}),
        json.dumps(KEY).replace("/", "\\/"),
        "https://host/?key=ke%2Fplanted%2B%220123456789%22%3D%3D",
        "https://host/?key=ke%2fplanted%2b%220123456789%22%3d%3d",
        "https://host/?next=%2Fv1%3Fkey%3Dke%252Fplanted%252B%25220123456789%2522%253D%253D",
        "<b>ke/planted+&quot;0123456789&quot;==</b>",
        "<b>ke&#47;planted&#43;&#34;0123456789&#34;&#61;&#61;</b>",
        "<b>ke&#x2F;planted&#x2b;&#x22;0123456789&#x22;&#x3D;&equals;</b>",
        r"ke\u002fplanted\u002b\u00220123456789\u0022\u003d\u003d",
        r"ke\u002Fplanted\u002B\u00220123456789\u0022\u003D\u003D",
        r"ke/planted\u002b\"0123456789\"\u003D=",
        json.dumps(json.dumps(json.dumps(KEY).replace("/", "\\/"))),
    ],
)
def test_a_secret_is_found_as_json_addresses_and_pages_write_it(written):
    never_show(KEY)
    assert "planted" not in Redaction({"VENDOR_API_KEY": KEY})(written)
    assert holds_a_secret(written)


def test_a_password_of_any_letters_is_found_as_json_and_addresses_write_it():
    redact = Redaction({"DATABASE_PASSWORD": "größe und 😀"})
    for written in ("größe und 😀", json.dumps("größe und 😀"), quote("größe und 😀"), quote_plus("größe und 😀")):
        assert redact(f"with {written}!") in ("with …!", 'with "…"!')


@given(st.text(min_size=8, max_size=40), st.data())
def test_whatever_a_secret_is_and_however_each_of_its_characters_is_written_it_is_taken_out(value, data):
    ways = (lambda c: json.dumps(c)[1:-1], lambda c: quote(c, safe=""), html.escape, lambda c: f"&#{ord(c)};", str)
    written = "".join(c if c.isascii() and c.isalnum() else data.draw(st.sampled_from(ways))(c) for c in value)
    assert Spelled(value).taken_out(f"<{written}>") == "<…>"


@pytest.mark.timeout(20)
def test_texts_that_nearly_hold_a_secret_are_looked_through_in_no_time():
    secret = Spelled('\\\\%25&#"planted' * 4)
    for repeated in ("\\", "%25", "%", "&#0", "planted", '\\\\%25&#"planted'):
        secret.taken_out(repeated * 100_000)
        secret.begun_at(repeated * 100_000, 6)


def test_a_placeholder_hides_no_ordinary_word():
    never_show("none")
    assert Redaction({"VENDOR_API_KEY": "EMPTY"})("none was EMPTY") == "none was EMPTY"
