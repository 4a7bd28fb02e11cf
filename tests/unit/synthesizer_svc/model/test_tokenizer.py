"""Counting by a server's tokenizer, and its failures, which leave bounds."""

from __future__ import annotations

import asyncio
import json

import pytest

from shared.clock import SECOND_NS, ManualClock
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.exchange import Head, TransportFault, Trouble
from synthesizer_svc.model.tokenizer import LEFT_ALONE_S, EndpointTokenizer, open_tokenizer, root

LLAMA_CPP = EndpointSettings(name="here", url="http://127.0.0.1:9/v1", model="m", server="llama.cpp")
VLLM = EndpointSettings(name="there", url="http://127.0.0.1:9/v1", model="m", server="vllm")


class Server:
    """Answers every question with ``answer``, or breaks off."""

    def __init__(self, answer=b'{"tokens": [1, 2, 3]}', status=200, fault=None):
        self._answer, self.status, self._fault = answer, status, fault
        self.asked = []

    async def send(self, call, reader, *, deadline_s, answer_bytes_max):
        self.asked.append((call.path, json.loads(call.body)))
        if self._fault:
            raise self._fault
        reader.begin(Head(status=self.status, headers={}))
        reader.feed(self._answer)

    async def close(self):
        pass


def counted(server, *texts, settings=LLAMA_CPP):
    return asyncio.run(EndpointTokenizer(settings, server).count(texts))


@pytest.mark.parametrize(
    ("settings", "question"),
    [
        (LLAMA_CPP, {"content": "a b c", "add_special": True}),
        (VLLM, {"model": "m", "prompt": "a b c", "add_special_tokens": True}),
    ],
)
def test_each_server_is_asked_as_it_documents(settings, question):
    server = Server()
    assert counted(server, "a b c", settings=settings) == {"a b c": 3}
    assert server.asked == [("/tokenize", question)]


BROKEN = [
    Server(fault=TransportFault(Trouble.UNREACHABLE, "refused")),
    Server(status=404),
    Server(answer=b"not json"),
    Server(answer=b'{"tokens": 3}'),
    Server(answer=b"[]"),
    Server(answer=b"\xff"),
]


@pytest.mark.parametrize("server", BROKEN)
def test_a_tokenizer_that_fails_counts_nothing_and_is_left_alone_for_a_while(server):
    clock = ManualClock(1)

    async def thrice():
        tokenizer = EndpointTokenizer(LLAMA_CPP, server, clock)
        for pause_s in (LEFT_ALONE_S - 1, 1, 0):
            assert await tokenizer.count(["a"]) is None
            clock.advance(pause_s * SECOND_NS)

    asyncio.run(thrice())
    assert len(server.asked) == 2


def test_a_server_that_was_still_loading_counts_later():
    server, clock = Server(status=503), ManualClock(1)

    async def twice():
        tokenizer = EndpointTokenizer(LLAMA_CPP, server, clock)
        assert await tokenizer.count(["a"]) is None
        server.status = 200
        clock.advance(LEFT_ALONE_S * SECOND_NS)
        return await tokenizer.count(["a"])

    assert asyncio.run(twice()) == {"a": 3}


def test_nobody_counts_for_several_endpoints_or_for_a_server_without_a_method():
    assert open_tokenizer([]) is None
    assert open_tokenizer([LLAMA_CPP, VLLM]) is None
    assert open_tokenizer([EndpointSettings(name="x", url="http://127.0.0.1:9/v1", model="m")]) is None


@pytest.mark.parametrize("url", ["http://h:1/v1", "http://h:1/v1/", "http://h:1"])
def test_the_tokenizer_is_beside_the_version(url):
    assert root(url) == "http://h:1"
