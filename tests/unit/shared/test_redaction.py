"""Secrets are taken out of texts by their names, by their places, and because somebody said so."""

from __future__ import annotations

import json

import pytest

from shared.redaction import Redaction, holds_a_secret, never_show

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
        "<b>ke/planted+&quot;0123456789&quot;==</b>",
    ],
)
def test_a_secret_is_found_as_json_addresses_and_pages_write_it(written):
    assert "planted" not in Redaction({"VENDOR_API_KEY": KEY})(written)


def test_a_placeholder_hides_no_ordinary_word():
    never_show("none")
    assert Redaction({"VENDOR_API_KEY": "EMPTY"})("none was EMPTY") == "none was EMPTY"
