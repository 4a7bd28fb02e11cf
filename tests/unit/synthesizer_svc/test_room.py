"""What a context leaves for a question and its answer, and what happens where that is too little."""

from __future__ import annotations

import asyncio

import pytest

from synthesizer_svc.asking.room import Room
from synthesizer_svc.prompts.budget import MARGIN_TOKENS
from tests.fakes.talker import Talker
from tests.unit.synthesizer_svc.desk import KERNEL, desk


def test_an_unknown_context_leaves_the_limits_that_were_set():
    room = Room.of([0, 0], 64_000)
    assert room.answer(16_000) == 16_000
    assert room.question(16_000).tokens == 64_000


def test_the_smallest_context_that_may_be_asked_counts():
    room = Room.of([128_000, 0, 8_192], 64_000)
    assert room.answer(16_000) == 4_096
    assert room.question(4_096).tokens == 8_192 - 4_096 - MARGIN_TOKENS


def test_a_short_answer_leaves_the_question_the_rest():
    assert Room.of([8_192], 64_000).question(500).tokens == 8_192 - 500 - MARGIN_TOKENS


def test_a_context_that_leaves_nothing_is_said_so():
    room = Room.of([200], 64_000)
    with pytest.raises(ValueError, match="left for the prompt"):
        room.question(room.answer(16_000))


@pytest.mark.parametrize(("tokens", "code"), [(500, "context"), (64_000, "")])
def test_a_question_that_does_not_fit_is_not_asked_and_says_so(tokens, code):
    async def scenario():
        model = Talker(lambda _: f"Less.\n```cpp\n{KERNEL}\n```")
        async with desk(model=model, share=100, asking={"prompt_tokens_max": tokens}) as at:
            (fact,) = await at.facts(await at.request(count=1))
        return fact, model

    fact, model = asyncio.run(scenario())
    assert getattr(fact, "code", "") == code
    assert fact.context.asking == "whole"
    assert len(model.asked) == (0 if code else 1)
    if code:
        assert "500 are left for it" in fact.detail
