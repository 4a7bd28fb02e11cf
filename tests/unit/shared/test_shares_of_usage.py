"""What each endpoint took of a bill is its own, whoever answered in the end, and the shares add up to the whole."""

from __future__ import annotations

import pytest

from shared import json_codec, proto_codec
from shared.events import Spend, Usage
from shared.usage import UNKNOWN, shares, taken_by, total

DEAR = taken_by(Usage(input_tokens=900, output_tokens=100, cost_micro=5000, requests=2), "dear")
CHEAP = taken_by(Usage(input_tokens=900, output_tokens=50, cost_micro=10, requests=1), "cheap")


def test_the_one_that_failed_and_the_one_that_answered_are_told_apart():
    assert shares(total(DEAR, CHEAP), "cheap") == (
        Spend(endpoint="cheap", tokens=950, cost_micro=10, requests=1),
        Spend(endpoint="dear", tokens=1000, cost_micro=5000, requests=2),
    )


def test_turns_of_one_endpoint_are_one_share():
    assert shares(total(CHEAP, CHEAP), "cheap") == (Spend(endpoint="cheap", tokens=1900, cost_micro=20, requests=2),)


def test_a_bill_without_shares_is_all_of_the_one_that_is_named_as_in_older_logs():
    old = Usage(input_tokens=10, output_tokens=5, cost_micro=UNKNOWN, requests=3)
    assert shares(old, "e") == (Spend(endpoint="e", tokens=15, cost_micro=UNKNOWN, requests=3),)
    assert shares(Usage(), "e") == (Spend(endpoint="e"),)
    assert shares(Usage(latency_ns=5), "") == ()


def test_what_a_call_that_was_cut_off_cost_is_in_the_rest():
    lost = Usage(requests=1, cost_micro=UNKNOWN, estimated=True)
    assert shares(total(CHEAP, lost), "") == (
        Spend(endpoint="", cost_micro=UNKNOWN, requests=1),
        Spend(endpoint="cheap", tokens=950, cost_micro=10, requests=1),
    )


def test_an_endpoint_without_a_price_does_not_hide_what_the_other_cost():
    unpriced = taken_by(Usage(input_tokens=10, cost_micro=UNKNOWN, requests=1), "local")
    by_name = {share.endpoint: share.cost_micro for share in shares(total(unpriced, CHEAP), "cheap")}
    assert by_name == {"local": UNKNOWN, "cheap": 10}


def test_who_was_sent_nothing_took_nothing():
    assert taken_by(Usage(latency_ns=7), "e").spends == ()


@pytest.mark.parametrize("usage", [Usage(input_tokens=3), total(DEAR, CHEAP)])
def test_shares_survive_both_codecs_and_a_bill_of_an_older_program_has_the_bytes_that_it_had(usage):
    message = proto_codec.to_message(usage)
    assert proto_codec.from_message(Usage, message) == usage
    assert json_codec.from_plain(Usage, json_codec.to_plain(usage), "usage") == usage
    older = {name: value for name, value in json_codec.to_plain(usage).items() if name != "spends"}
    assert json_codec.from_plain(Usage, older, "usage").spends == ()
    assert len(proto_codec.to_message(Usage(input_tokens=3)).SerializeToString()) == 2
