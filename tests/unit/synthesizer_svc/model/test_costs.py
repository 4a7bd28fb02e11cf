"""What tokens cost, and how many there are at most where nobody counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.events import Usage
from synthesizer_svc.model import Message, Role
from synthesizer_svc.model.estimate import most, prompt_tokens, text_tokens
from synthesizer_svc.model.prices import Prices, cost_micro
from tests.unit.synthesizer_svc.model.questions import QUESTION, REPAIR

PRICES = Prices(input=3_000_000, output=15_000_000)


def test_a_price_is_per_million_tokens_and_rounded_up():
    assert cost_micro(Usage(input_tokens=1_000_000), PRICES) == 3_000_000
    assert cost_micro(Usage(output_tokens=1), Prices(input=0, output=1)) == 1


def test_no_price_is_unknown_and_a_price_of_zero_is_free():
    used = Usage(input_tokens=1, output_tokens=1)
    assert cost_micro(used, Prices()) == -1
    assert cost_micro(used, Prices(input=1)) == -1
    assert cost_micro(used, Prices(input=0, output=0)) == 0


def test_no_tokens_cost_nothing_whatever_the_price():
    assert cost_micro(Usage(requests=3), Prices()) == 0


def test_cached_tokens_have_their_price_or_that_of_the_others():
    used = Usage(input_tokens=10, cached_tokens=8)
    assert cost_micro(used, PRICES) == 30
    assert cost_micro(used, replace(PRICES, cached=300_000)) == 9  # 2 * 3 + 8 * 0.3, rounded up


def test_tokens_written_to_the_cache_have_their_price_or_a_quarter_more():
    used = Usage(input_tokens=8, cache_write_tokens=8)
    assert cost_micro(used, PRICES) == 30
    assert cost_micro(used, replace(PRICES, cache_write=0)) == 0


def test_an_endpoint_that_counts_more_cached_than_read_is_charged_for_all():
    assert cost_micro(Usage(input_tokens=1, cached_tokens=10), replace(PRICES, cached=1_000_000)) == 10


def test_a_negative_price_is_refused():
    with pytest.raises(ValueError, match="output is -1"):
        Prices(output=-1)


@given(st.text())
def test_no_text_has_more_tokens_than_bytes(text):
    assert text_tokens(text) >= len(text)


def test_a_prompt_counts_all_that_is_sent():
    longer = replace(QUESTION, messages=REPAIR)
    assert prompt_tokens(longer) > prompt_tokens(QUESTION) > len(QUESTION.system)
    assert prompt_tokens(replace(QUESTION, schema="{}")) > prompt_tokens(QUESTION)
    wide = replace(QUESTION, messages=(Message(role=Role.USER, text="好" * 100),))
    assert prompt_tokens(wide) >= 300


def test_the_most_of_an_attempt_is_its_prompt_and_all_it_may_write():
    assert most(QUESTION) == Usage(input_tokens=prompt_tokens(QUESTION), output_tokens=100, requests=1, estimated=True)
