"""A real model behind a real server: what the adapters make of both protocols as llama.cpp speaks them.

The server has one thread and its machine is shared with other tests, so deadlines are generous and answers short.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from synthesizer_svc.model import CompletionRequest, Message, ModelErrorCode, Role
from synthesizer_svc.model.capabilities import Capabilities, Protocol, SchemaOutput, Support
from synthesizer_svc.model.exchange import Head, TransportFault, Trouble
from synthesizer_svc.model.faults import Fault, broken
from synthesizer_svc.model.http import HttpTransport
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.reading import PROTOCOLS, AnswerReader, answer_bytes_max
from synthesizer_svc.model.secret import Secret
from tests import model_server
from tests.aio import on_loop

pytestmark = pytest.mark.timeout(300)
DEADLINE_S = 240.0
LOADING_TRIES = 4
"""It takes connections for about a second before it has loaded its model; a test that is held up then misses it."""
PROTOCOLS_SPOKEN = (Protocol.OPENAI, Protocol.ANTHROPIC)
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


def question(text="Name a colour.", *, system="You are terse.", tokens=12, seed=1, schema=""):
    return CompletionRequest(
        system=system,
        messages=(Message(role=Role.USER, text=text),),
        seed=seed,
        output_tokens_max=tokens,
        deadline_s=DEADLINE_S,
        schema=schema,
    )


def speaking(protocol, *, streaming=True, schema=SchemaOutput.SCHEMA):
    return Capabilities(protocol=protocol, streaming=streaming, schema=schema, seed=Support.YES)


class OneAttempt:
    """A reader and a transport put together as an endpoint does, without its retries: one request, one outcome."""

    def __init__(self, request, capabilities, *, temperature=0.7):
        self.reader = AnswerReader(request, capabilities, Prices())
        self._request = request
        self._call = PROTOCOLS[capabilities.protocol].call(
            request, model_server.MODEL, capabilities, {"temperature": temperature}
        )

    async def send(self, url, *, key="", on_chunk=None):
        """The completion; raises ``Fault``."""
        transport = HttpTransport(
            url,
            credentials={"authorization": Secret(f"Bearer {key}")} if key else {},
            connect_s=30,
            silence_s=DEADLINE_S,
        )
        try:
            await transport.send(
                self._call,
                Tapped(self.reader, on_chunk) if on_chunk else self.reader,
                deadline_s=DEADLINE_S,
                answer_bytes_max=answer_bytes_max(self._request),
            )
        except TransportFault as error:
            raise broken(error) from error
        finally:
            await transport.close()
        return self.reader.finish(0.0)


class Tapped:
    """A reader that tells when something arrives."""

    def __init__(self, reader, on_chunk):
        self._reader, self._on_chunk = reader, on_chunk

    def begin(self, head: Head):
        self._reader.begin(head)

    def feed(self, chunk):
        more = self._reader.feed(chunk)
        self._on_chunk()
        return more


async def ask(url, request, capabilities, **more):
    temperature = more.pop("temperature", 0.7)
    return await OneAttempt(request, capabilities, temperature=temperature).send(url, **more)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("protocol", PROTOCOLS_SPOKEN)
@on_loop
async def test_an_answer_is_text_with_what_it_used(url, protocol, streaming):
    completion = await ask(url, question(), speaking(protocol, streaming=streaming))

    assert completion.text.strip()
    assert completion.model == model_server.MODEL
    assert 20 <= completion.usage.input_tokens <= 60
    assert 1 <= completion.usage.output_tokens <= 12
    assert completion.usage.cached_tokens < completion.usage.input_tokens
    assert not completion.usage.estimated
    assert completion.usage.cost_micro == -1  # nobody said what it costs
    assert completion.truncated == (completion.usage.output_tokens == 12)


@on_loop
async def test_streamed_and_whole_answers_are_the_same(url):
    streamed = await ask(url, question(seed=5), speaking(Protocol.OPENAI))
    whole = await ask(url, question(seed=5), speaking(Protocol.OPENAI, streaming=False))

    assert streamed.text == whole.text
    assert streamed.usage.output_tokens == whole.usage.output_tokens


@pytest.mark.parametrize("protocol", PROTOCOLS_SPOKEN)
@on_loop
async def test_an_answer_that_meets_its_limit_is_truncated(url, protocol):
    completion = await ask(url, question("Count from one to a hundred in words.", tokens=8), speaking(protocol))

    assert completion.truncated
    assert completion.usage.output_tokens == 8


@on_loop
async def test_a_seed_repeats_an_answer_and_another_seed_gives_another(url):
    asked = question("Tell a short story about a river.", tokens=24, seed=3)
    first, again = [await ask(url, asked, speaking(Protocol.OPENAI)) for _ in range(2)]
    other = await ask(url, replace(asked, seed=4), speaking(Protocol.OPENAI))

    assert first.text == again.text
    assert first.text != other.text


@on_loop
async def test_an_answer_follows_its_schema(url):
    completion = await ask(url, question("Choose a tile size.", tokens=64, schema=SCHEMA), speaking(Protocol.OPENAI))
    chosen = json.loads(completion.text)

    assert not completion.truncated
    assert set(chosen) == {"tile", "why"}
    assert chosen["tile"] in (8, 16, 32)


@on_loop
async def test_a_server_that_ignores_schemas_answers_in_prose_all_the_same(url):
    """llama.cpp's messages route takes ``output_config`` and does not follow it: what comes must be read as hostile."""
    asked = question("Write one word about tiles.", tokens=16, schema=SCHEMA)
    completion = await ask(url, asked, speaking(Protocol.ANTHROPIC))

    assert completion.text.strip()


@on_loop
async def test_a_conversation_goes_on(url):
    turns = (
        Message(role=Role.USER, text="Say: ready."),
        Message(role=Role.ASSISTANT, text="Ready."),
        Message(role=Role.USER, text="Say it again."),
    )
    asked = replace(question(), messages=turns)
    for protocol in PROTOCOLS_SPOKEN:
        assert (await ask(url, asked, speaking(protocol))).text.strip()


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS_SPOKEN)
@on_loop
async def test_a_prompt_beyond_the_context_is_told_as_that(url, protocol):
    with pytest.raises(Fault) as caught:
        await ask(url, question("word " * 9000), speaking(protocol))

    assert caught.value.code is ModelErrorCode.CONTEXT
    assert not caught.value.again


@pytest.mark.parametrize("protocol", PROTOCOLS_SPOKEN)
@on_loop
async def test_a_wrong_key_is_told_once_and_the_right_one_answers(keyed, protocol):
    with pytest.raises(Fault) as caught:
        await ask(keyed, question(), speaking(protocol), key="not-the-right-key")

    assert caught.value.code is ModelErrorCode.CREDENTIALS
    assert caught.value.hopeless
    assert "not-the-right-key" not in str(caught.value)
    assert (await ask(keyed, question(tokens=2), speaking(protocol), key="the-right-key")).text


@pytest.fixture(scope="module")
def keyed():
    with model_server.fresh("the-right-key") as server:
        yield f"{model_server.ready(server)}/v1"


def test_a_server_that_still_loads_asks_to_come_again():
    fault = None
    for _ in range(LOADING_TRIES):
        with model_server.fresh() as server:
            fault = asyncio.run(first_fault(f"http://{server.address}/v1"))
            model_server.ready(server)
        if fault:
            break

    assert fault is not None
    assert (fault.code, fault.again) == (ModelErrorCode.ENDPOINT, True)
    assert "Loading model" in fault.detail


async def first_fault(url):
    try:
        await ask(url, question(tokens=1), speaking(Protocol.OPENAI))
    except Fault as fault:
        return fault
    return None  # it had loaded


@on_loop
async def test_a_server_that_dies_while_it_answers_is_a_typed_fault_and_what_it_may_have_cost_is_told():
    with model_server.fresh() as server:
        url = f"{model_server.ready(server)}/v1"
        attempt = OneAttempt(question("Count from one to a thousand in words.", tokens=4000), speaking(Protocol.OPENAI))
        with pytest.raises(Fault) as caught:
            await attempt.send(url, on_chunk=server.kill)
        with pytest.raises(Fault) as gone:
            await ask(url, question(), speaking(Protocol.OPENAI))

    assert (caught.value.code, caught.value.again) == (ModelErrorCode.ENDPOINT, True)
    assert isinstance(caught.value.__cause__, TransportFault)
    assert caught.value.__cause__.trouble is Trouble.CUT
    spent = attempt.reader.spent(sent=True)
    assert spent.output_tokens == 4000
    assert spent.estimated
    assert gone.value.__cause__.trouble is Trouble.UNREACHABLE
