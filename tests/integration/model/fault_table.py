"""Every way an endpoint fails, in either dialect: what it does, and how a question ends then.

Errors come in every form under both dialects: servers of one protocol answer with the other's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.fakes import dialect_scripts as scripts
from tests.fakes import endpoint_answers as endpoint
from tests.fakes.dialect_scripts import begun, stream_of, uncounted
from tests.fakes.dialects import ANTHROPIC, OPENAI, Dialect, Told
from tests.fakes.endpoint_answers import TEXT, answered, error
from tests.fakes.fault_server import Script

RATE = error("Rate limit reached", "rate_limit_exceeded", "rate_limit_error")
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
TOO_LONG = "This model's maximum context length is 8192 tokens"
SPENT = error("You exceeded your current quota", "credit_balance_exhausted", "insufficient_quota")
ENFORCED = {
    "type": "error",
    "error": {"type": "rate_limit_error", "message": "x", "details": {"error_code": "enforced_spend_limit_reached"}},
}
REDIRECTS = (300, 301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """``code``: of the failure, or ``answered``. ``pauses``: the search should wait. ``billed``: tokens may be."""

    code: str
    requests: int
    within_s: float = 5.0
    pauses: bool = False
    billed: bool = False


Row = tuple[tuple[Script, ...], Ends]

ANSWERED = Ends(code="answered", requests=1, billed=True)
MENDED = Ends(code="answered", requests=2, billed=True)
"""Answered when asked again."""
FAILED = Ends(code="endpoint", requests=3)
"""After all attempts."""
GARBLED = Ends(code="answer", requests=2, billed=True)
"""After as many attempts as may be billed."""
REJECTED = Ends(code="rejected", requests=1)
CREDENTIALS = Ends(code="credentials", requests=1, pauses=True)
SPEND_LIMIT = Ends(code="spend_limit", requests=1, pauses=True)
CONTEXT = Ends(code="context", requests=1)
TOO_MUCH = Ends(code="answer", requests=1, billed=True)
"""More than an answer may have, or what cannot be read: not asked for again."""


def table(dialect: Dialect) -> Mapping[str, Row]:
    """All rows of ``dialect``."""
    own = {OPENAI: _openai, ANTHROPIC: _anthropic}[dialect]()
    return {
        **_well(dialect), **_limits(dialect), **_ill(dialect), **_refused(dialect), **_redirects(),
        **_errors_as_answers(dialect), **_no_answers(dialect), **_too_much(dialect), **_connections(dialect), **own,
    }  # fmt: skip


def slow(dialect: Dialect) -> Mapping[str, tuple[Script, Ends]]:
    """What goes on for as long as anybody waits: the deadline ends it."""
    late = Ends(code="deadline", requests=1, within_s=30, billed=True)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    return {
        "silence": (endpoint.silent, late),
        "a stream that stalls": (scripts.then_nothing(*begun(dialect)), late),
        "a drip of comments": (scripts.drip(head.replace(b"json", b"x") + b"\r\n", b":\n"), late),
        "a drip of events": (scripts.repeating(dialect.piece("x"), scripts.DRIP_S), late),
        "an object that drips into its announced length": (scripts.drip_of_a_body(200), late),
        "a stream that drips into an announced length": (scripts.drip_of_a_body(200, "text/event-stream"), late),
        "a head that drips": (scripts.drip(head + b"x-slow: ", b"x"), late),
        "interim answers without end": (scripts.drip(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"), late),
        "an illness that drips": (scripts.drip_of_a_body(503), Ends(code="endpoint", requests=1, within_s=30)),
        "a limit that drips": (scripts.drip_of_a_body(429), Ends(code="endpoint", requests=1, within_s=30)),
        "a refusal that drips": (scripts.drip_of_a_body(400), replace(REJECTED, within_s=30)),
        "a refused key that drips": (scripts.drip_of_a_body(401), replace(CREDENTIALS, within_s=30)),
    }


def _well(dialect: Dialect) -> dict[str, Row]:
    good, whole = scripts.good(dialect), scripts.whole(dialect)
    return {
        "a stream": ((good,), ANSWERED),
        "an object though a stream was asked for": ((answered(200, whole),), ANSWERED),
        "a stream cut into single bytes": ((scripts.in_pieces(dialect, 1),), ANSWERED),
        "a stream cut within characters": ((scripts.in_pieces(dialect, 7),), ANSWERED),
        "a stream labelled as text": ((scripts.in_pieces(dialect, 5, "text/plain"),), ANSWERED),
        "a stream labelled as nothing known": ((scripts.in_pieces(dialect, 1, "application/octet-stream"),), ANSWERED),
        "an object labelled as text": ((answered(200, whole, kind="text/plain; charset=utf-8"),), ANSWERED),
        "a connection that stays open after the answer": (
            (scripts.then_nothing(*uncounted(dialect), dialect.last),),
            ANSWERED,
        ),
        "a connection cut after the answer's end": ((stream_of(*uncounted(dialect), ends=False),), ANSWERED),
        "a stream without its last mark": ((stream_of(*uncounted(dialect)),), ANSWERED),
        "no usage": ((stream_of(*uncounted(dialect), dialect.last),), ANSWERED),
        "usage of null": ((answered(200, {**whole, "usage": None}),), ANSWERED),
    }


def _limits(dialect: Dialect) -> dict[str, Row]:
    good = scripts.good(dialect)
    beyond = Ends(code="endpoint", requests=1, pauses=True)
    remaining = ("x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-tokens: 6m0s")
    return {
        "429 with a pause in seconds": ((answered(429, RATE, "retry-after: 0.05", *remaining), good), MENDED),
        "429 with a pause in milliseconds": ((answered(429, RATE, "retry-after-ms: 50"), good), MENDED),
        "429 without a pause": ((answered(429, RATE), good), MENDED),
        "429 without a body": ((answered(429), good), MENDED),
        "429 with a pause of -1": ((answered(429, RATE, "retry-after: -1"), good), MENDED),
        "429 with a pause that is no time": ((answered(429, RATE, "retry-after: soon"), good), MENDED),
        "429 with a date long past": (
            (answered(429, RATE, "retry-after: Wed, 01 Jan 2020 00:00:00 GMT"), good),
            MENDED,
        ),
        "429 for good": ((answered(429, RATE),), FAILED),
        "429 with a pause beyond the deadline": ((answered(429, RATE, "retry-after: 3600"),), beyond),
        "429 with a date beyond the deadline": (
            (answered(429, RATE, "retry-after: Wed, 02 Dec 2099 00:00:00 GMT"),),
            beyond,
        ),
        "429 that must not be tried again": (
            (answered(429, RATE, "x-should-retry: false"),),
            Ends(code="endpoint", requests=1),
        ),
        "429 of a spent balance": ((answered(429, SPENT),), SPEND_LIMIT),
        "429 of an enforced limit": ((answered(429, ENFORCED),), SPEND_LIMIT),
        "402": ((answered(402, error("pay")),), SPEND_LIMIT),
        "400 of a low balance": (
            (answered(400, error("Your credit balance is too low to access the API")),),
            SPEND_LIMIT,
        ),
    }


def _ill(dialect: Dialect) -> dict[str, Row]:
    good = scripts.good(dialect)
    return {
        "500": ((answered(500, error("oops", None, "server_error")), good), MENDED),
        "500 of Anthropic's": ((answered(500, ANTHROPIC.error("Internal", kind="api_error")), good), MENDED),
        "502 as a page": ((answered(502, b"<html><h1>502 Bad Gateway</h1></html>", kind="text/html"), good), MENDED),
        "503 while loading": ((answered(503, error("Loading model", 503, "unavailable_error")), good), MENDED),
        "503 for good": ((answered(503),), FAILED),
        "504": ((answered(504), good), MENDED),
        "504 for good": ((answered(504),), replace(FAILED, requests=2, billed=True)),
        "524 for good": ((answered(524),), replace(FAILED, requests=2, billed=True)),
        "529": ((answered(529, OVERLOADED), good), MENDED),
        "408": ((answered(408), good), MENDED),
        "501": ((answered(501, error("no")),), REJECTED),
    }


def _refused(dialect: Dialect) -> dict[str, Row]:
    """The question, the key or the model is at fault."""
    cut_off = endpoint.cut_after(b'{"error": "Unauthorized"}', status=401)
    return {
        "400": ((answered(400, error("bad")),), REJECTED),
        "400 of Anthropic's": ((answered(400, ANTHROPIC.error("messages: bad")),), REJECTED),
        "400, flat": (
            (answered(400, {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}),),
            REJECTED,
        ),
        "422 of FastAPI": (
            (answered(422, {"detail": [{"loc": ["body", "messages"], "msg": "bad", "type": "value_error"}]}),),
            REJECTED,
        ),
        "400 of the context": ((answered(400, error(TOO_LONG, "context_length_exceeded")),), CONTEXT),
        "400 of the context, Anthropic": (
            (answered(400, ANTHROPIC.error("prompt is too long: 210000 tokens > 200000 maximum")),),
            CONTEXT,
        ),
        "400 of the context, llama.cpp": (
            (answered(400, error("exceeds the available context size", 400, "exceed_context_size_error")),),
            CONTEXT,
        ),
        "413": ((answered(413, error("too large", None, "request_too_large")),), CONTEXT),
        "400 of the filter": (
            (answered(400, error("filtered", "content_filter")),),
            Ends(code="refused", requests=1),
        ),
        "401 as text, cut off": ((cut_off,), CREDENTIALS),
        "401 as text": ((answered(401, {"error": "Unauthorized"}),), CREDENTIALS),
        "401 of Anthropic's": (
            (answered(401, ANTHROPIC.error("invalid x-api-key", kind="authentication_error")),),
            CREDENTIALS,
        ),
        "403": ((answered(403, error("no")),), CREDENTIALS),
        "404 of the model": (
            (answered(404, error("no such model", "model_not_found")),),
            replace(REJECTED, pauses=True),
        ),
        "404 of a path": ((answered(404, b"404 page not found", kind="text/plain"),), replace(REJECTED, pauses=True)),
    }


def _redirects() -> dict[str, Row]:
    return {
        f"{status}": (
            (answered(status, b"", "location: http://127.0.0.1:1/v1"),),
            replace(REJECTED, pauses=True),
        )
        for status in REDIRECTS
    }


def _errors_as_answers(dialect: Dialect) -> dict[str, Row]:
    good = scripts.good(dialect)
    boom = dialect.error("boom", 500, "server_error")
    rate = dialect.error("Rate limit", "rate_limit_exceeded", "rate_limit_error")
    return {
        "an error in an answer of 200": (
            (answered(200, dialect.error("upstream", None, "server_error")), good),
            MENDED,
        ),
        "a spent balance in an answer of 200": ((answered(200, SPENT),), SPEND_LIMIT),
        "an error in a stream": ((stream_of(*begun(dialect), boom), good), MENDED),
        "an error at the start of a stream": ((stream_of(rate), good), MENDED),
        "a refusal of the context in a stream": (
            (stream_of(dialect.error(TOO_LONG)),),
            replace(CONTEXT, billed=True),
        ),
    }


def _no_answers(dialect: Dialect) -> dict[str, Row]:
    good = scripts.good(dialect)
    half, nothing = b'{"id":"c","choices":[{"index":0,', dialect.whole(None, None, dialect.stop)
    return {
        "half an object": ((answered(200, half), good), MENDED),
        "half an object for good": ((answered(200, half),), GARBLED),
        "no body": ((answered(200, b""), good), MENDED),
        "a number": ((answered(200, b"7"), good), MENDED),
        "brackets without end": ((answered(200, b"[" * 200_000), good), MENDED),
        "a page": ((answered(200, b"<html>Sign in</html>", kind="text/html"), good), MENDED),
        "an object of nothing": ((answered(200, {}), good), MENDED),
        "content of null": ((answered(200, nothing), good), MENDED),
        "content of null for good": ((answered(200, nothing),), GARBLED),
        "an event that is no JSON": ((stream_of(*begun(dialect), "{oops"), good), MENDED),
        "a stream without an end": ((stream_of(*begun(dialect)), good), MENDED),
        "a stream without anything": ((stream_of(), good), MENDED),
        "a compressed answer": ((answered(200, b"\x1f\x8b\x08", "content-encoding: gzip"),), TOO_MUCH),
    }


def _too_much(dialect: Dialect) -> dict[str, Row]:
    good = scripts.good(dialect)
    return {
        "a stream that is never at its end": ((scripts.repeating(dialect.piece("x" * 60_000)),), TOO_MUCH),
        "an event on a line without end": ((scripts.flood(b'data: {"x": "', kind="text/event-stream"),), TOO_MUCH),
        "an object on a line without end": ((scripts.flood(b'{"x": "'),), TOO_MUCH),
        "an object of a terabyte": ((scripts.flood(b'{"x": "', length=1 << 40),), TOO_MUCH),
        "a line without end of nothing known": ((scripts.flood(b"x", kind="application/octet-stream"),), TOO_MUCH),
        "an illness told without end": ((scripts.flood(b'{"error": "', status=500),), FAILED),
        "a refusal told without end": ((scripts.flood(b'{"error": "', status=400),), REJECTED),
        "a redirect told without end": ((scripts.flood(b"<html>", status=307),), replace(REJECTED, pauses=True)),
        "a header of a megabyte": ((scripts.headers(1 << 20, ends=True), good), MENDED),
        "a header of a megabyte for good": ((scripts.headers(1 << 20, ends=True),), replace(FAILED, billed=True)),
        "headers without end": ((scripts.headers(1 << 10, ends=False), good), MENDED),
        "short headers without end": ((scripts.headers(1, ends=False), good), MENDED),
    }


def _connections(dialect: Dialect) -> dict[str, Row]:
    good = scripts.good(dialect)
    cut = stream_of(*begun(dialect), ends=False)
    return {
        "a shorter body than announced": ((endpoint.cut_after(b'{"id":"c'), good), MENDED),
        "a stream cut in the middle": ((cut, good), MENDED),
        "a stream reset in the middle": ((scripts.then_reset(*begun(dialect)), good), MENDED),
        "a stream that breaks HTTP's rules in the middle": ((scripts.then_no_chunk(*begun(dialect)), good), MENDED),
        "a stream cut for good": ((cut,), replace(FAILED, requests=2, billed=True)),
        "a reset": ((endpoint.reset, good), MENDED),
        "a connection closed without an answer": ((endpoint.closed, good), MENDED),
        "no HTTP": ((endpoint.not_http, good), MENDED),
    }


def _openai() -> dict[str, Row]:
    good = scripts.good(OPENAI)
    aborted: list[Told] = [*begun(OPENAI), *OPENAI.closing("abort")]
    return {
        "a mark without a reason to end": ((stream_of(*OPENAI.opening(), OPENAI.piece(TEXT), "[DONE]"),), ANSWERED),
        "no choices": ((answered(200, {"id": "x", "choices": [], "usage": None}), good), MENDED),
        "an aborted answer": ((stream_of(*aborted), good), MENDED),
    }


def _anthropic() -> dict[str, Row]:
    good = scripts.good(ANTHROPIC)
    unsaid = [*ANTHROPIC.opening(), ANTHROPIC.piece(TEXT), *ANTHROPIC.closing(None), ANTHROPIC.last]
    return {
        "a mark without a reason to end": ((stream_of(*unsaid), good), MENDED),
        "no blocks and no reason to end": (
            (answered(200, {"id": "x", "type": "message", "content": []}), good),
            MENDED,
        ),
        "a stream that is overloaded": ((stream_of(*begun(ANTHROPIC), OVERLOADED), good), MENDED),
        "an answer that waits for tools": (
            (stream_of(*begun(ANTHROPIC), *ANTHROPIC.closing("pause_turn"), ANTHROPIC.last), good),
            MENDED,
        ),
    }
