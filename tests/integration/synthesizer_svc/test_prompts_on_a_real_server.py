"""Prompts before a real tokenizer and a real cache: bounds that hold, counts that fit, a prefix that is read once."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthesizer_svc.counting import CountingComposer
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.tokenizer import open_tokenizer
from synthesizer_svc.prompts import ByteBound, DoesNotFit, Fate, TokenBudget, compose, quoting
from tests import model_server
from tests.unit.synthesizer_svc.situations import SITUATIONS

TEXTS = (
    st.text() | st.text(alphabet="qxzjkQXZJ0189_<>(){}[];:,.+-*/=&|^~!? \n\t\"'\\#") | st.text(alphabet="é漢😀\u200b")
)
CODE = [each.source for situation in SITUATIONS.values() for each in situation.parents]


class RealTokenizer:
    """llama.cpp's ``/tokenize``."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=100)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._connection.close()

    def post(self, path: str, body: dict) -> dict:
        with self._lock:
            self._connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = self._connection.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, answer
            return answer

    def tokens(self, text: str) -> int:
        return len(self.post("/tokenize", {"content": text, "add_special": True})["tokens"])

    async def count(self, texts):
        return {text: self.tokens(text) for text in texts}


@pytest.fixture(scope="module")
def tokenizer():
    with closing(RealTokenizer(model_server.url())) as tokenizer:
        yield tokenizer


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
def test_the_bound_is_never_below_what_a_real_tokenizer_counts(tokenizer, text):
    assert tokenizer.tokens(text) <= ByteBound().count(text) or not text


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_prompt_has_no_more_tokens_than_its_parts_are_said_to_have(tokenizer, name):
    budget = TokenBudget(tokens=6_000)
    bounded = compose(SITUATIONS[name], budget)
    counted = asyncio.run(CountingComposer(tokenizer).compose(SITUATIONS[name], budget))
    assert counted.exact
    for prompt in (bounded, counted):
        assert tokenizer.tokens(prompt.system) + tokenizer.tokens(prompt.user) <= prompt.tokens <= budget.tokens
    assert len(counted.user) >= len(bounded.user)


def test_a_mark_that_ends_a_message_in_a_real_chat_template_is_text_once_it_is_quoted(tokenizer):
    def read(content):
        question = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
        return tokenizer.post("/v1/chat/completions", question)["usage"]["prompt_tokens"]

    nothing, mark = read("a"), "<|im_end|>"
    assert read(f"a{mark}") == nothing + 1  # one token: the end of the user's turn
    assert read(f"a{quoting.visible(mark)}") > nothing + len("im_end") // 2


def test_a_small_contexts_prompt_is_counted_by_its_servers_tokenizer_and_not_bounded():
    async def composed():
        settings = EndpointSettings(name="here", url=model_server.url(), model=model_server.MODEL, server="llama.cpp")
        tokenizer = open_tokenizer([settings])
        try:
            return await CountingComposer(tokenizer).compose(
                SITUATIONS["improve_memory_bound"], TokenBudget(tokens=3_000)
            )
        finally:
            await tokenizer.close()

    prompt = asyncio.run(composed())
    assert prompt.exact
    assert {part.fate for part in prompt.parts} == {Fate.KEPT}  # by bounds, it would not fit at all
    with pytest.raises(DoesNotFit):
        compose(SITUATIONS["improve_memory_bound"], TokenBudget(tokens=3_000))


def test_expansions_of_one_search_and_asking_read_their_shared_beginning_from_the_endpoints_cache(tokenizer):
    nothing = dict.fromkeys(("history", "negative", "passages", "setbacks", "siblings", "skills"), ())
    moves = replace(SITUATIONS["moves"], **nothing)  # short: a small model on a busy machine reads slowly
    expansions = [
        moves,
        moves,  # a sibling: the same prompt under another seed
        replace(moves, parents=SITUATIONS["wrong_result"].parents),
        replace(moves, parents=()),
    ]
    cached = []
    for seed, each in enumerate(expansions):
        prompt = compose(each)
        answer = tokenizer.post(
            "/v1/chat/completions",
            {
                "messages": [
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": prompt.user},
                ],
                "max_tokens": 1,
                "seed": seed,
            },
        )
        usage = answer["usage"]
        cached.append((usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]))
    shared_text = compose(moves).system + compose(moves).user.partition("# Diagnosis")[0]
    shared = tokenizer.tokens(shared_text)
    siblings, other, draft = cached[1:]
    assert siblings[0] >= 0.99 * siblings[1]
    assert other[0] >= 0.95 * shared
    assert draft[0] >= 0.95 * shared
