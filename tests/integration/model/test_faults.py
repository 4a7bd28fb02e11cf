"""Every way an endpoint fails, over real sockets: how the question ends, after how many requests, at what price."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from synthesizer_svc.model import Completion
from tests.aio import on_loop
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.endpoint_answers import TEXT, answered, completion, delta, error, stream_of
from tests.fakes.fault_server import Script
from tests.integration.model.asking import QUESTION, ask

RATE = error("Rate limit reached", "rate_limit_exceeded", "rate_limit_error")
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
TOO_LONG = error("This model's maximum context length is 8192 tokens", "context_length_exceeded")
SPENT = error("You exceeded your current quota", "credit_balance_exhausted", "insufficient_quota")
ENFORCED = {
    "type": "error",
    "error": {"type": "rate_limit_error", "message": "x", "details": {"error_code": "enforced_spend_limit_reached"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """``code``: the failure's, or ``answer``. ``pauses``: the search should wait. ``billed``: tokens may have been."""

    code: str
    requests: int
    within_s: float = 5.0
    pauses: bool = False
    billed: bool = False


ANSWERED = Ends(code="answer", requests=1, billed=True)
MENDED = Ends(code="answer", requests=2, billed=True)
"""Answered when asked again."""
FAILED = Ends(code="endpoint", requests=3)
"""After all attempts."""
GARBLED = Ends(code="answer_", requests=2, billed=True)
"""After as many attempts as may be billed."""

GOOD = endpoint.streamed

TABLE: dict[str, tuple[tuple[Script, ...], Ends]] = {
    # answers that are well
    "a stream": ((GOOD,), ANSWERED),
    "an object though a stream was asked for": ((answered(200, completion()),), ANSWERED),
    "a stream cut into single bytes": ((endpoint.in_pieces(1),), ANSWERED),
    "a stream cut within characters": ((endpoint.in_pieces(7),), ANSWERED),
    "a stream labelled as text": ((endpoint.in_pieces(5, "text/plain"),), ANSWERED),
    "a stream labelled as nothing known": ((endpoint.in_pieces(1, "application/octet-stream"),), ANSWERED),
    "an object labelled as text": ((answered(200, completion(), kind="text/plain; charset=utf-8"),), ANSWERED),
    "a connection that stays open after the answer": ((endpoint.unclosed,), ANSWERED),
    "a connection cut after the answer's end": (
        (stream_of(delta(TEXT), delta(finish="stop"), ends=False),),
        ANSWERED,
    ),
    "a stream without its last mark": ((stream_of(delta(TEXT), delta(finish="stop")),), ANSWERED),
    "a mark without a reason to end": ((stream_of(delta(TEXT), "[DONE]"),), ANSWERED),
    "no usage": ((stream_of(delta(TEXT), delta(finish="stop"), "[DONE]"),), ANSWERED),
    "usage of null": ((answered(200, completion(usage=None)),), ANSWERED),
    # limits
    "429 with a pause in seconds": ((answered(429, RATE, "retry-after: 0.05"), GOOD), MENDED),
    "429 with a pause in milliseconds": ((answered(429, RATE, "retry-after-ms: 50"), GOOD), MENDED),
    "429 without a pause": ((answered(429, RATE), GOOD), MENDED),
    "429 without a body": ((answered(429), GOOD), MENDED),
    "429 with a pause of -1": ((answered(429, RATE, "retry-after: -1"), GOOD), MENDED),
    "429 with a pause that is no time": ((answered(429, RATE, "retry-after: soon"), GOOD), MENDED),
    "429 with a date long past": (
        (answered(429, RATE, "retry-after: Wed, 01 Jan 2020 00:00:00 GMT"), GOOD),
        MENDED,
    ),
    "429 for good": ((answered(429, RATE),), FAILED),
    "429 with a pause beyond the deadline": (
        (answered(429, RATE, "retry-after: 3600"),),
        Ends(code="endpoint", requests=1, pauses=True),
    ),
    "429 with a date beyond the deadline": (
        (answered(429, RATE, "retry-after: Wed, 02 Dec 2099 00:00:00 GMT"),),
        Ends(code="endpoint", requests=1, pauses=True),
    ),
    "429 that must not be tried again": (
        (answered(429, RATE, "x-should-retry: false"),),
        Ends(code="endpoint", requests=1),
    ),
    "429 of a spent balance": ((answered(429, SPENT),), Ends(code="spend_limit", requests=1, pauses=True)),
    "429 of an enforced limit": ((answered(429, ENFORCED),), Ends(code="spend_limit", requests=1, pauses=True)),
    "402": ((answered(402, error("pay")),), Ends(code="spend_limit", requests=1, pauses=True)),
    "400 of a low balance": (
        (answered(400, error("Your credit balance is too low to access the API")),),
        Ends(code="spend_limit", requests=1, pauses=True),
    ),
    # the endpoint is ill
    "500": ((answered(500, error("oops", None, "server_error")), GOOD), MENDED),
    "502 as a page": ((answered(502, b"<html><h1>502 Bad Gateway</h1></html>", kind="text/html"), GOOD), MENDED),
    "503 while loading": ((answered(503, error("Loading model", 503, "unavailable_error")), GOOD), MENDED),
    "503 for good": ((answered(503),), FAILED),
    "504": ((answered(504), GOOD), MENDED),
    "504 for good": ((answered(504),), replace(FAILED, requests=2, billed=True)),
    "524 for good": ((answered(524),), replace(FAILED, requests=2, billed=True)),
    "529": ((answered(529, OVERLOADED), GOOD), MENDED),
    "408": ((answered(408), GOOD), MENDED),
    "501": ((answered(501, error("no")),), Ends(code="rejected", requests=1)),
    # the question is at fault
    "400": ((answered(400, error("bad")),), Ends(code="rejected", requests=1)),
    "400, flat": (
        (answered(400, {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}),),
        Ends(code="rejected", requests=1),
    ),
    "422 of FastAPI": (
        (answered(422, {"detail": [{"loc": ["body", "messages"], "msg": "bad", "type": "value_error"}]}),),
        Ends(code="rejected", requests=1),
    ),
    "400 of the context": ((answered(400, TOO_LONG),), Ends(code="context", requests=1)),
    "400 of the context, llama.cpp": (
        (answered(400, error("exceeds the available context size", 400, "exceed_context_size_error")),),
        Ends(code="context", requests=1),
    ),
    "413": ((answered(413, error("too large", None, "request_too_large")),), Ends(code="context", requests=1)),
    "400 of the filter": (
        (answered(400, error("filtered", "content_filter")),),
        Ends(code="refused", requests=1),
    ),
    "401 as text, cut off": (
        (endpoint.cut_after(b'{"error": "Unauthorized"}', status=401),),
        Ends(code="credentials", requests=1, pauses=True),
    ),
    "401 as text": ((answered(401, {"error": "Unauthorized"}),), Ends(code="credentials", requests=1, pauses=True)),
    "403": ((answered(403, error("no")),), Ends(code="credentials", requests=1, pauses=True)),
    "404 of the model": (
        (answered(404, error("no such model", "model_not_found")),),
        Ends(code="rejected", requests=1, pauses=True),
    ),
    "a redirect": (
        (answered(307, b"", "location: http://127.0.0.1:1/v1"),),
        Ends(code="rejected", requests=1, pauses=True),
    ),
    # errors in the form of answers
    "an error in an answer of 200": ((answered(200, error("upstream", None, "server_error")), GOOD), MENDED),
    "a spent balance in an answer of 200": (
        (answered(200, SPENT),),
        Ends(code="spend_limit", requests=1, pauses=True),
    ),
    "an error in a stream": ((stream_of(delta("he"), error("boom", 500, "server_error")), GOOD), MENDED),
    "an error at the start of a stream": (
        (stream_of(error("Rate limit", "rate_limit_exceeded")), GOOD),
        MENDED,
    ),
    "a refusal of the context in a stream": (
        (stream_of(TOO_LONG),),
        Ends(code="context", requests=1, billed=True),
    ),
    # answers that are none
    "half an object": ((answered(200, b'{"id":"c","choices":[{"index":0,'), GOOD), MENDED),
    "half an object for good": ((answered(200, b'{"id":"c","choices":[{"index":0,'),), GARBLED),
    "no body": ((answered(200, b""), GOOD), MENDED),
    "a number": ((answered(200, b"7"), GOOD), MENDED),
    "brackets without end": ((answered(200, b"[" * 200_000), GOOD), MENDED),
    "a page": ((answered(200, b"<html>Sign in</html>", kind="text/html"), GOOD), MENDED),
    "no choices": ((answered(200, {"id": "x", "choices": [], "usage": None}), GOOD), MENDED),
    "content of null": ((answered(200, completion(None)), GOOD), MENDED),
    "content of null for good": ((answered(200, completion(None)),), GARBLED),
    "an event that is no JSON": ((stream_of(delta("he"), "{oops"), GOOD), MENDED),
    "an aborted answer": ((stream_of(delta("he"), delta(finish="abort")), GOOD), MENDED),
    "a stream without an end": ((stream_of(delta("hello")), GOOD), MENDED),
    "a stream without anything": ((stream_of(), GOOD), MENDED),
    "a compressed answer": (
        (answered(200, b"\x1f\x8b\x08", "content-encoding: gzip"),),
        Ends(code="answer_", requests=1, billed=True),
    ),
    "more than an answer may have": ((endpoint.endless,), Ends(code="answer_", requests=1, billed=True)),
    # connections
    "a shorter body than announced": ((endpoint.cut_after(b'{"id":"c'), GOOD), MENDED),
    "a stream cut in the middle": ((stream_of(delta("he"), ends=False), GOOD), MENDED),
    "a stream reset in the middle": ((endpoint.reset_in_stream, GOOD), MENDED),
    "a stream cut for good": ((stream_of(delta("he"), ends=False),), replace(FAILED, requests=2, billed=True)),
    "a reset": ((endpoint.reset, GOOD), MENDED),
    "a connection closed without an answer": ((endpoint.closed, GOOD), MENDED),
    "no HTTP": ((endpoint.not_http, GOOD), MENDED),
}
QUICK_S = 2.0
"""Enough for the request to arrive on a machine that is busy."""
QUICK = replace(QUESTION, deadline_s=QUICK_S)
SLOW: dict[str, tuple[Script, Ends]] = {
    "silence": (endpoint.silent, Ends(code="deadline", requests=1, within_s=30, billed=True)),
    "a stream that stalls": (endpoint.stalled, Ends(code="deadline", requests=1, within_s=30, billed=True)),
    "a drip": (endpoint.dripping, Ends(code="deadline", requests=1, within_s=30, billed=True)),
}
"""With a deadline of ``QUICK_S``; the server would wait for as long as anybody does."""


def check(asked, ends: Ends) -> None:
    assert (asked.code if isinstance(asked.outcome, Completion) else _failed(asked), asked.requests) == (
        ends.code,
        ends.requests,
    ), asked.outcome
    assert asked.took_s < ends.within_s
    usage = asked.outcome.usage
    assert usage.requests == ends.requests
    assert usage.latency_ns > 0
    assert (usage.input_tokens > 0, usage.cost_micro > 0) == (ends.billed, ends.billed)
    if isinstance(asked.outcome, Completion):
        assert asked.outcome.text == TEXT
        assert (asked.outcome.truncated, asked.outcome.refused) == (False, False)
        assert asked.outcome.endpoint == "e"
    else:
        assert asked.outcome.pauses == ends.pauses


def _failed(asked) -> str:
    """``answer`` is a failure's name, too."""
    return "answer_" if asked.code == "answer" else asked.code


@pytest.mark.parametrize("fault", TABLE)
@on_loop
async def test_a_question_ends_as_the_table_says(fault):
    scripts, ends = TABLE[fault]
    check(await ask(*scripts), ends)


@pytest.mark.parametrize("fault", SLOW)
@on_loop
async def test_a_deadline_holds_whatever_the_endpoint_does(fault):
    script, ends = SLOW[fault]
    check(await ask(script, question=QUICK), ends)


@pytest.mark.parametrize("deadline_s", [20.0, QUICK_S])
@on_loop
async def test_silence_counts_as_a_whole_answer_that_a_proxy_kept_back_and_a_cut_connection_as_the_prompt(deadline_s):
    question = replace(QUESTION, deadline_s=deadline_s)
    silence = await ask(endpoint.silent, question=question, silence_s=0.2 if deadline_s > QUICK_S else 30.0)
    assert silence.outcome.usage.output_tokens >= QUESTION.output_tokens_max
    assert silence.outcome.usage.estimated
    cut = await ask(endpoint.closed)
    assert cut.outcome.usage.output_tokens == 0
    assert cut.outcome.usage.input_tokens > 0
