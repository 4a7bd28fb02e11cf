"""Errors are told apart by their code, whatever form they come in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthesizer_svc.model import ModelErrorCode as Code
from synthesizer_svc.model.exchange import Head, TransportFault, Trouble
from synthesizer_svc.model.faults import broken, read, refused, retry_after_s, shortened
from synthesizer_svc.model.reading import ERROR_BYTES, AnswerReader
from tests.unit.synthesizer_svc.model.questions import PRICES, QUESTION, SHOWN

NOW_S = 1_800_000_000.0


def fault(status, told, **headers):
    body = told if isinstance(told, bytes) else json.dumps(told).encode()
    return refused(Head(status=status, headers=headers), body, NOW_S)


def nested(code=None, kind=None, message="m", **more):
    return {"error": {"message": message, "type": kind, "code": code, **more}}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (nested(), "m"),
        ({"object": "error", "message": "m", "code": 400}, "m"),
        ({"error": "m"}, "m"),
        ([nested()], "m"),
        ({"detail": "m"}, "m"),
        ({"detail": [{"loc": ["body", "seed"], "msg": "m"}]}, "m"),
        ("m", "m"),
        (b"<html>m", "<html>m"),
        (b"", "no explanation"),
        ({}, "no explanation"),
        ([], "no explanation"),
        (nested(message=None), "no explanation"),
        ({"error": {"message": {"nested": 1}}}, "no explanation"),
    ],
)
def test_every_form_of_error_is_read(told, message):
    assert fault(400, told).detail == f"400 {message}"


def test_the_field_that_is_refused_is_known():
    assert fault(400, nested(param="seed")).parameter == "seed"
    assert fault(422, {"detail": [{"loc": ["body", "seed"], "msg": "m"}]}).parameter == "body.seed"


SPEND, BUSY, ILL = Code.SPEND_LIMIT, Code.ENDPOINT, Code.ENDPOINT


@pytest.mark.parametrize(
    ("status", "told", "code", "again"),
    [
        (429, nested("rate_limit_exceeded"), BUSY, True),
        (429, nested("slow_down"), BUSY, True),
        (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}, BUSY, True),
        (429, nested("credit_balance_exhausted", "insufficient_quota"), SPEND, False),
        (429, nested("organization_spend_limit_exceeded", "insufficient_quota"), SPEND, False),
        (429, nested("project_spend_limit_exceeded"), SPEND, False),
        (429, nested("organization_usage_limit_exceeded"), SPEND, False),
        (429, nested(None, "insufficient_quota"), SPEND, False),
        (429, nested(details={"error_code": "enforced_spend_limit_reached"}), SPEND, False),
        (402, nested(None, "billing_error"), SPEND, False),
        (403, nested("billing_not_active"), SPEND, False),
        (400, nested(message="Your credit balance is too low to access the API."), SPEND, False),
        (529, nested(None, "overloaded_error"), ILL, True),
        (503, nested(503, "unavailable_error", "Loading model"), ILL, True),
        (500, nested(None, "api_error"), ILL, True),
        (400, nested("context_length_exceeded"), Code.CONTEXT, False),
        (400, nested(400, "exceed_context_size_error"), Code.CONTEXT, False),
        (400, nested(message="prompt is too long: 210000 tokens > 200000 maximum"), Code.CONTEXT, False),
        (400, nested(400, "BadRequestError", "maximum context length is 4096"), Code.CONTEXT, False),
        (413, nested(None, "request_too_large"), Code.CONTEXT, False),
        (400, nested("content_filter"), Code.REFUSED, False),
        (400, nested("content_policy_violation"), Code.REFUSED, False),
        (401, {"error": "Unauthorized"}, Code.CREDENTIALS, False),
        (400, nested("invalid_api_key"), Code.CREDENTIALS, False),
        (403, nested(None, "permission_error"), Code.CREDENTIALS, False),
        (404, nested("model_not_found"), Code.REJECTED, False),
        (405, b"", Code.REJECTED, False),
        (400, nested("invalid_value"), Code.REJECTED, False),
        (501, nested(), Code.REJECTED, False),
    ],
)  # fmt: skip
def test_a_code_decides_before_a_status(status, told, code, again):
    found = fault(status, told)
    assert (found.code, found.again) == (code, again)


@pytest.mark.parametrize("code", [Code.SPEND_LIMIT, Code.CREDENTIALS])
def test_what_only_a_person_can_mend_is_hopeless(code):
    told = {Code.SPEND_LIMIT: (402, b""), Code.CREDENTIALS: (401, b"")}[code]
    assert fault(*told).hopeless


def test_a_limit_of_rates_says_nothing_against_the_endpoint_and_an_error_of_its_own_does():
    assert (fault(429, b"").ailing, fault(500, b"").ailing, fault(400, b"").ailing) == (False, True, False)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "-1", "retry-after": "9"}, 9),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:10 GMT"}, 10),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:00 GMT"}, 0),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "inf"}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "soon"}, 0),
        ({}, 0),
    ],
)
def test_a_pause_is_what_the_endpoint_asks_for_if_it_makes_sense(headers, seconds):
    assert retry_after_s(headers, NOW_S) == seconds


@given(st.text(max_size=40))
def test_no_header_breaks_a_pause(text):
    assert retry_after_s({"retry-after": text, "retry-after-ms": text}, NOW_S) >= 0


@given(st.binary(max_size=200), st.integers(100, 599))
def test_no_body_breaks_the_reading(body, status):
    assert "\n" not in fault(status, body).detail
    assert read(body).status in {0, *range(400, 600)}


def test_a_long_explanation_is_one_short_line():
    line = shortened("a\r\n\x1b[31m b\x00" + "x" * 10_000)
    assert line.startswith("a [31m b x")
    assert len(line) == 400


@pytest.mark.parametrize(
    ("trouble", "code", "again"),
    [
        (Trouble.UNREACHABLE, Code.ENDPOINT, True),
        (Trouble.CUT, Code.ENDPOINT, True),
        (Trouble.SILENT, Code.ENDPOINT, True),
        (Trouble.UNTRUSTED, Code.ENDPOINT, False),
        (Trouble.LATE, Code.DEADLINE, False),
        (Trouble.TOO_LONG, Code.ANSWER, False),
        (Trouble.ENCODED, Code.ANSWER, False),
    ],
)
def test_a_broken_exchange_is_tried_again_where_that_may_help(trouble, code, again):
    found = broken(TransportFault(trouble, "x"))
    assert (found.code, found.again, found.ailing) == (code, again, True)


def test_of_an_error_no_more_is_read_than_is_looked_at():
    reader = AnswerReader(QUESTION, SHOWN, PRICES)
    reader.begin(Head(status=500, headers={}))
    assert reader.feed(b"x" * (ERROR_BYTES - 1))
    assert not reader.feed(b"x")
