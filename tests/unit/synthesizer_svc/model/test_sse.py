"""Events of a stream are the same however its bytes are cut."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from synthesizer_svc.model.sse import Event, Parser

TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)
EVENTS = st.lists(st.builds(Event, data=st.lists(TEXT, min_size=1, max_size=3).map("\n".join), name=TEXT), max_size=5)
LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


def parsed(*chunks: bytes) -> list[Event]:
    parser = Parser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.finish()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@st.composite
def written(draw, events=EVENTS):
    """Events, and a stream that holds them, with comments and all kinds of line ends."""
    expected, text = draw(events), draw(st.sampled_from(["", "\ufeff"]))
    for event in expected:
        end = draw(LINE_END)
        lines = [f"data: {line}" for line in event.data.split("\n")]
        if event.name:
            lines.insert(draw(st.integers(0, len(lines))), f"event: {event.name}")
        if draw(st.booleans()):
            lines.insert(0, ": comment")
        text += "".join(line + end for line in (*lines, ""))
    return expected, text.encode()


@given(written(), st.lists(st.integers(0, 400), max_size=12))
def test_cuts_anywhere_change_nothing(told, places):
    expected, data = told
    assert parsed(*cut(data, places)) == expected


@given(written())
def test_single_bytes_change_nothing(told):
    expected, data = told
    assert parsed(*(data[at : at + 1] for at in range(len(data)))) == expected


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_no_bytes_are_an_error_and_cutting_them_elsewhere_gives_the_same(chunks):
    assert parsed(*chunks) == parsed(b"".join(chunks))


def test_fields_without_a_space_and_without_a_value_count():
    assert parsed(b"data:a\ndata\ndata: b\n\n") == [Event(data="a\n\nb")]


def test_events_without_data_and_unknown_fields_are_none():
    assert parsed(b"event: ping\n\nid: 4\nretry: 10\n: c\n\n") == []


def test_a_last_event_without_its_blank_line_counts():
    assert parsed(b"data: a\n\ndata: [DONE]") == [Event(data="a"), Event(data="[DONE]")]


def test_a_long_line_in_many_pieces_is_joined_once():
    pieces = [b"data: "] + [b"x" * 100] * 20_000 + [b"\n\n"]
    assert parsed(*pieces) == [Event(data="x" * 2_000_000)]
