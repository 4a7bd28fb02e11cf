"""Server-sent events from bytes that arrive cut anywhere (pure).

https://html.spec.whatwg.org/multipage/server-sent-events.html, but for ``id`` and ``retry``: nobody reconnects here.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    data: str
    name: str = ""
    """``event:`` of the stream, empty where it has none."""


class Parser:
    """Feed it what comes; it gives each event when its blank line is there."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._line: list[str] = []
        """Pieces of a line whose end has not come: joined once, however many they are."""
        self._after_return = False
        """The last character was a carriage return: a line feed that follows ends no second line."""
        self._data: list[str] = []
        self._name = ""

    def feed(self, chunk: bytes) -> list[Event]:
        return list(self._take(self._decoder.decode(chunk)))

    def finish(self) -> list[Event]:
        """What came without its blank line. The standard drops it; servers that leave the last one out exist."""
        events = list(self._take(self._decoder.decode(b"", final=True)))
        if self._line:
            self._end_of_line()
        return [*events, *self._end_of_event()]

    def _take(self, text: str) -> Iterator[Event]:
        if self._after_return and text:
            text = text.removeprefix("\n")
            self._after_return = False
        start = 0
        for end in _LINE_END.finditer(text):
            self._line.append(text[start : end.start()])
            start = end.end()
            if self._end_of_line():
                yield from self._end_of_event()
        if start < len(text):
            self._line.append(text[start:])
        elif text.endswith("\r"):
            self._after_return = True

    def _end_of_line(self) -> bool:
        """Takes the line in; whether it was blank."""
        line = "".join(self._line)
        self._line.clear()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return not line

    def _end_of_event(self) -> Iterator[Event]:
        if self._data:
            yield Event(data="\n".join(self._data), name=self._name)
        self._data.clear()
        self._name = ""
