"""A planted key is nowhere but in the header that it belongs into, whatever the endpoint does with it."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest

from shared import logs
from shared.ports import Ports, open_ports
from shared.settings import PortSettings
from synthesizer_svc.model import Completion, ModelError
from synthesizer_svc.model.breaker import BreakerSettings
from synthesizer_svc.model.budgeted import BudgetSettings
from synthesizer_svc.model.configuration import Authentication
from synthesizer_svc.model.faults import DETAIL_CHARS
from synthesizer_svc.model.opening import open_model
from synthesizer_svc.model.retrying import RetrySettings
from synthesizer_svc.model.secret import Secret
from synthesizer_svc.model.tokenizer import LLAMA_CPP, open_tokenizer
from tests.aio import on_loop
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.dialect_scripts import stream_of
from tests.fakes.echoing_endpoint import escaped
from tests.fakes.endpoint_answers import TEXT, completion, delta
from tests.fakes.fault_server import Wire, fault_server
from tests.integration.model.asking import QUESTION, settings_for

KEY = "sk-planted-0123456789"
ESCAPED = escaped(KEY)
RETRY = RetrySettings(attempts_max=2, pause_s=0.01)


def told_back(status: int, **headers: str):
    """An error that echoes every header of the request, in its body and in headers of its own."""

    async def script(wire: Wire) -> None:
        echoed = json.dumps(dict(wire.request.headers))
        body = {"error": {"message": f"who sent {echoed}? {KEY}", "type": KEY, "code": KEY, "param": KEY}}
        await wire.answer(status, body, [f"{name}: {KEY}" for name in ("retry-after", "x-request-id", "location")])

    return script


async def in_text(wire: Wire) -> None:
    """An answer that tells the key, in its text and as its model's name."""
    await wire.begin_stream()
    await wire.event(delta(f"{TEXT} {KEY[:8]}") | {"model": KEY})
    await wire.event(delta(KEY[8:]) | {"model": f"m {KEY}"})
    await wire.event(delta(finish="stop"))
    await wire.event("[DONE]")
    await wire.end_stream()


async def in_http(wire: Wire) -> None:
    """What is no HTTP, and is quoted in the parser's complaint."""
    await wire.send(f"HTTP/1.1 200 OK\r\nauthorization {KEY}\r\n\r\n".encode())
    wire.close()


SCRIPTS = {
    "an answer": endpoint.streamed,
    "an answer that tells it": in_text,
    "an object that tells it": endpoint.answered(200, completion(f"{TEXT} {KEY}")),
    "an answer that tells it escaped": endpoint.answered(200, completion(f"{TEXT} {ESCAPED}")),
    "an error that quotes another's": endpoint.answered(
        400, {"error": {"message": f'upstream: {{"key": "{ESCAPED}"}}'}}
    ),
    "what is no JSON and tells it escaped": endpoint.answered(200, f'{{"{ESCAPED}'.encode()),
    **{
        f"a {status} that is cut within it": endpoint.answered(status, f"{'x' * (DETAIL_CHARS - 14)}{KEY}".encode())
        for status in (401, 404, 500)
    },
    "a page": endpoint.answered(200, f"<html>{KEY}</html>".encode(), kind="text/html"),
    "an event that is none": stream_of(delta("he"), f"{{{KEY}"),
    "an error in a stream": stream_of(delta("he"), {"error": {"message": KEY, "code": KEY}}),
    "broken headers": in_http,
    "silence": endpoint.silent,
    "a reset": endpoint.reset,
    **{f"a {status} that echoes it": told_back(status) for status in (302, 400, 401, 404, 413, 422, 429, 500)},
}


@contextmanager
def everything_logged():
    """All lines of all loggers, as a service writes them at DEBUG."""
    written, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(written), root.level
    handler.setFormatter(logs.TextLines(logs.Redaction({})))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield written
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@asynccontextmanager
async def ports() -> AsyncIterator[Ports]:
    async with open_ports(PortSettings(store_url="memory:")) as opened:
        yield opened


def kept(ports: Ports) -> str:
    """Everything in the store and in the cache."""
    store = ports.store
    return repr([store.documents._collections, store.blobs._blobs, store.journal._streams, ports.cache.cache._entries])


@pytest.mark.parametrize("authentication", [Authentication.BEARER, Authentication.API_KEY])
@pytest.mark.parametrize("script", SCRIPTS)
@on_loop
async def test_a_planted_key_is_in_no_log_no_error_no_answer_and_not_in_the_store(script, authentication):
    async with fault_server(SCRIPTS[script]) as server, ports() as opened:
        settings = settings_for(server, key=Secret(KEY), authentication=authentication)
        with everything_logged() as logged:
            model = open_model(
                "",
                (settings,),
                ports=opened,
                retry=RETRY,
                breaker=BreakerSettings(failures_max=1),
                budget=BudgetSettings(),
            )
            assert model.close
            try:
                outcome = await model.model.complete(replace(QUESTION, deadline_s=1.0))
            except ModelError as error:
                outcome = error
                logging.getLogger("test").exception("as a bug would be")
            await model.close()
        stored = kept(opened)
    sent = [value for request in server.received for value in request.headers.values()]
    assert any(KEY in value for value in sent)
    shown = outcome.text + outcome.model if isinstance(outcome, Completion) else "".join(trace(outcome))
    for told in (logged.getvalue(), shown, repr(outcome), stored, repr(settings), repr(vars(model.model))):
        assert KEY[:8] not in told
        assert ESCAPED not in told


@pytest.mark.parametrize("script", SCRIPTS)
@on_loop
async def test_counting_tokens_tells_no_key_either(script):
    async with fault_server(SCRIPTS[script]) as server:
        settings = replace(settings_for(server, key=Secret(KEY), silence_s=0.5), server=LLAMA_CPP)
        with everything_logged() as logged:
            tokenizer = open_tokenizer((settings,))
            assert tokenizer is not None
            counts = await tokenizer.count(["a text"])
            await tokenizer.close()
    assert counts is None
    assert any(KEY in value for request in server.received for value in request.headers.values())
    assert "counts no tokens" in logged.getvalue()
    assert KEY not in logged.getvalue()
    assert ESCAPED not in logged.getvalue()


def trace(error: BaseException) -> list[str]:
    """All that a traceback could show, chains included."""
    lines = traceback.format_exception(error)
    chain: BaseException | None = error
    while chain is not None:
        lines += [repr(chain), str(chain), repr(getattr(chain, "__dict__", ""))]
        chain = chain.__cause__ or chain.__context__
    return lines
