"""Whatever stands at any place of an answer or an error, it is read, and what is read of it fits into an event."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from shared import proto_codec
from synthesizer_svc.model import Completion
from tests.fakes.endpoint_answers import completion, delta
from tests.unit.synthesizer_svc.model.questions import MESSAGES, read_object, read_stream
from tests.unit.synthesizer_svc.model.test_anthropic import ENDED, STARTED, STOPPED, message, piece

DETAILS = {"prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 1}}
USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8, **DETAILS}
ERROR = {
    "error": {"message": "no", "type": "t", "param": "p", "code": "c", "loc": ["a", 1], "details": {"error_code": "e"}}
}


def tower(levels: int = 900) -> list:
    """Lists in lists, as deep as a parser gives them and deeper than ``repr`` goes from some places."""
    top: list = []
    inner = top
    for _ in range(levels):
        inner.append([])
        inner = inner[0]
    return top


HOSTILE = (
    *(tower(), {"a": tower()}, "\ud800", "\x00\x1b]52;c;aGk=\x07\u202e", "x" * 200_000, "", [], {}, [None], None, True),
    *(10**30, 2**63, 2**40, -1, 0, 1.5, 1e308, float("inf"), float("nan")),
)


def places(told: object, before: tuple = ()) -> Iterator[tuple]:
    """Where values stand in ``told``, at every depth."""
    named = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    for name, value in named:
        yield (*before, name)
        yield from places(value, (*before, name))


def spoilt(told: object) -> Iterator[object]:
    """``told`` with each hostile value at each place."""
    for *way, last in places(told):
        for value in HOSTILE:
            changed = copy.deepcopy(told)
            at = changed
            for name in way:
                at = at[name]
            at[last] = value
            yield changed


READERS = {
    "an answer": (completion("hi", usage=USAGE, refusal=None), read_object),
    "an error": (ERROR, lambda told: read_object(told, status=400)),
    "an error in an answer of 200": (ERROR, read_object),
    "a stream": (delta("hi", usage=USAGE), lambda told: read_stream(delta("a"), told, delta(finish="stop"), "[DONE]")),
    "a message": (message("hi"), lambda told: read_object(told, capabilities=MESSAGES)),
    "the start of a message": (STARTED[1], lambda told: read_messages(("message_start", told), piece("hi"), ENDED)),
    "a piece of a message": (piece("hi")[1], lambda told: read_messages(STARTED, ("content_block_delta", told), ENDED)),
    "the end of a message": (ENDED[1], lambda told: read_messages(STARTED, piece("hi"), ("message_delta", told))),
}


def read_messages(*events):
    return read_stream(*events, STOPPED, capabilities=MESSAGES)


@pytest.mark.parametrize("reader", READERS)
def test_no_value_at_any_place_breaks_the_reading_or_the_event_that_tells_of_it(reader):
    good, read = READERS[reader]
    for told in spoilt(good):
        found = read(told)
        proto_codec.to_message(found.usage).SerializeToString()
        said = (found.text, found.model) if isinstance(found, Completion) else (found.detail,)
        assert all(isinstance(text.encode(), bytes) for text in said)
        assert not isinstance(found, Completion) or len(found.model) <= 200
        assert isinstance(found, Completion) or len(found.detail) <= 1000
