"""A real model behind a real server: what an endpoint makes of both protocols as llama.cpp speaks them.

The server has one thread and its machine is shared with other tests, so deadlines are generous and answers short.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from shared.cache.memory import MemoryCache, MemoryLeases
from shared.clock import SystemClock
from synthesizer_svc.model import CompletionRequest, Message, ModelError, ModelErrorCode, Role
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.capabilities import Capabilities, Protocol, SchemaOutput, Support
from synthesizer_svc.model.configuration import EndpointSettings
from synthesizer_svc.model.endpoint import Endpoint
from synthesizer_svc.model.opening import open_transport
from synthesizer_svc.model.retrying import RetrySettings
from synthesizer_svc.model.secret import Secret
from tests import model_server
from tests.aio import on_loop

pytestmark = pytest.mark.timeout(300)
DEADLINE_S = 240.0
LOADING_TRIES = 4
"""It takes connections for about a second before it has loaded its model; a test that is held up then misses it."""
BOTH = (Protocol.OPENAI, Protocol.ANTHROPIC)
ONCE = RetrySettings(attempts_max=1)
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "tile": {"type": "integer", "enum": [8, 16, 32]},
            "why": {"type": "string", "maxLength": 40},
        },
        "required": ["tile", "why"],
        "additionalProperties": False,
    }
)


@pytest.fixture(scope="module")
def url():
    return model_server.url()


@pytest.fixture(scope="module")
def keyed():
    with model_server.fresh("the-right-key") as server:
        yield f"{model_server.ready(server)}/v1"


def question(text="Name a colour.", *, tokens=12, seed=1, schema=""):
    return CompletionRequest(
        system="You are terse.",
        messages=(Message(role=Role.USER, text=text),),
        seed=seed,
        output_tokens_max=tokens,
        deadline_s=DEADLINE_S,
        schema=schema,
    )


@asynccontextmanager
async def endpoint(
    url, protocol=Protocol.OPENAI, *, streaming=True, key="", retry=None, through=lambda transport: transport
):
    """The product's endpoint at ``url``. ``through`` wraps its transport."""
    settings = EndpointSettings(
        name="local",
        url=url,
        model=model_server.MODEL,
        capabilities=Capabilities(protocol=protocol, streaming=streaming, schema=SchemaOutput.SCHEMA, seed=Support.YES),
        key=Secret(key) if key else None,
        connect_s=30.0,
        silence_s=DEADLINE_S,
    )
    clock = SystemClock()
    opened = Endpoint(
        settings,
        through(open_transport(settings)),
        cache=MemoryCache(clock),
        leases=MemoryLeases(clock),
        clock=clock,
        retry=retry,
        breaker=BreakerSettings(failures_max=1000),
    )
    try:
        yield opened
    finally:
        await opened.close()


async def ask(url, request, protocol=Protocol.OPENAI, **more):
    async with endpoint(url, protocol, **more) as model:
        return await model.complete(request)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("protocol", BOTH)
@on_loop
async def test_an_answer_is_text_with_what_it_used(url, protocol, streaming):
    completion = await ask(url, question(seed=5), protocol, streaming=streaming)  # always this answer, which has no end
    usage = completion.usage

    assert completion.text.strip()
    assert (completion.model, completion.endpoint) == (model_server.MODEL, "local")
    assert 20 <= usage.input_tokens <= 60
    assert 1 <= usage.output_tokens <= 12
    assert usage.cached_tokens < usage.input_tokens
    assert usage.latency_ns > 0
    assert not usage.estimated
    assert usage.cost_micro == -1  # nobody said what it costs
    assert completion.truncated == (usage.output_tokens == 12)


@on_loop
async def test_streamed_and_whole_answers_are_the_same(url):
    streamed = await ask(url, question(seed=5))
    whole = await ask(url, question(seed=5), streaming=False)

    assert streamed.text == whole.text
    assert streamed.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize("protocol", BOTH)
@on_loop
async def test_an_answer_that_meets_its_limit_is_truncated(url, protocol):
    # One token: whatever a small model answers is longer, and "How can I help you?" was not longer than eight.
    completion = await ask(url, question("Count from one to a hundred in words.", tokens=1), protocol)

    assert completion.truncated
    assert completion.usage.output_tokens == 1


@on_loop
async def test_a_seed_repeats_an_answer_and_another_seed_gives_another(url):
    asked = question("Tell a short story about a river.", tokens=24, seed=3)
    async with endpoint(url) as model:
        first, again, other = [await model.complete(one) for one in (asked, asked, replace(asked, seed=4))]

    assert first.text == again.text
    assert first.text != other.text
    assert again.usage.cached_tokens > first.usage.input_tokens // 2


@on_loop
async def test_an_answer_follows_its_schema(url):
    completion = await ask(url, question("Choose a tile size.", tokens=64, schema=SCHEMA))
    chosen = json.loads(completion.text)

    assert not completion.truncated
    assert set(chosen) == {"tile", "why"}
    assert chosen["tile"] in (8, 16, 32)


@on_loop
async def test_a_server_that_ignores_schemas_answers_in_prose_all_the_same(url):
    """llama.cpp's messages route takes ``output_config`` and does not follow it: what comes must be read as hostile."""
    completion = await ask(url, question("Write one word about tiles.", schema=SCHEMA), Protocol.ANTHROPIC)

    assert completion.text.strip()


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("protocol", BOTH)
@on_loop
async def test_a_conversation_goes_on_without_a_question_lost_with_its_connection(url, protocol, streaming):
    """This server closes connections as it ends a stream, now and then."""
    turns = (
        Message(role=Role.USER, text="Say: ready."),
        Message(role=Role.ASSISTANT, text="Ready."),
        Message(role=Role.USER, text="Say it again."),
    )
    async with endpoint(url, protocol, streaming=streaming, retry=ONCE) as model:
        for length in (1, 3, 3, 3):
            completion = await model.complete(replace(question(tokens=2), messages=turns[:length]))
            assert completion.text.strip()


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", BOTH)
@on_loop
async def test_a_prompt_beyond_the_context_is_told_as_that_after_one_request(url, protocol):
    with pytest.raises(ModelError) as caught:
        await ask(url, question("word " * 9000), protocol)

    assert caught.value.code == ModelErrorCode.CONTEXT
    assert caught.value.usage.requests == 1
    assert not caught.value.pauses


@pytest.mark.parametrize("protocol", BOTH)
@on_loop
async def test_a_wrong_key_is_told_without_showing_it_and_the_right_one_answers(keyed, protocol):
    with pytest.raises(ModelError) as caught:
        await ask(keyed, question(), protocol, key="not-the-right-key")

    assert caught.value.code == ModelErrorCode.CREDENTIALS
    assert caught.value.usage.requests == 1
    assert caught.value.pauses
    assert "not-the-right-key" not in str(caught.value)
    assert (await ask(keyed, question(tokens=2), protocol, key="the-right-key")).text


def test_a_server_that_still_loads_is_asked_again_until_it_answers():
    for _ in range(LOADING_TRIES):
        with model_server.fresh() as server:
            retry = RetrySettings(attempts_max=100, pause_s=0.5, pause_max_s=0.5)
            completion = asyncio.run(ask(f"http://{server.address}/v1", question(tokens=2), retry=retry))
        if completion.usage.requests > 1:
            break

    assert completion.text
    assert completion.usage.requests > 1


class Tapped:
    """A transport that tells when the first piece of an answer arrives."""

    def __init__(self, transport, on_answer):
        self._transport, self._on_answer = transport, on_answer

    async def send(self, call, reader, **limits):
        await self._transport.send(call, _TappedReader(reader, self._on_answer), **limits)

    async def close(self):
        await self._transport.close()


class _TappedReader:
    def __init__(self, reader, on_answer):
        self._reader, self._on_answer = reader, on_answer

    def begin(self, head):
        self._reader.begin(head)

    def feed(self, chunk):
        more = self._reader.feed(chunk)
        self._on_answer()
        return more


@on_loop
async def test_a_server_that_dies_while_it_answers_is_a_typed_failure_and_what_it_may_have_cost_is_told():
    with model_server.fresh() as server:
        url = f"{model_server.ready(server)}/v1"
        asked = question("Count from one to a thousand in words.", tokens=4000)
        with pytest.raises(ModelError) as caught:
            await ask(url, asked, retry=ONCE, through=lambda transport: Tapped(transport, server.kill))
        with pytest.raises(ModelError) as gone:
            await ask(url, question(), retry=ONCE)

    assert caught.value.code == gone.value.code == ModelErrorCode.ENDPOINT
    assert caught.value.usage.output_tokens == 4000  # it may have generated them all
    assert caught.value.usage.estimated
    assert gone.value.usage.output_tokens == 0
