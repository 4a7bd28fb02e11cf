"""Reading an answer as it arrives: an error, one JSON object, or a stream of events, whatever was asked for (pure).

Servers that ignore ``stream`` answer with an object; proxies relabel streams as text. So the first bytes decide where
the content type does not.
"""

from __future__ import annotations

import json
from types import ModuleType

from shared.events import Usage
from synthesizer_svc.model import Completion, CompletionRequest
from synthesizer_svc.model import anthropic as anthropic_protocol
from synthesizer_svc.model import openai as openai_protocol
from synthesizer_svc.model.capabilities import Capabilities, Protocol
from synthesizer_svc.model.draft import Draft, replace_usage, unanswered
from synthesizer_svc.model.exchange import Head
from synthesizer_svc.model.faults import Fault, classified, garbled, is_error, refused, within
from synthesizer_svc.model.prices import Prices
from synthesizer_svc.model.sse import Event, Parser

PROTOCOLS: dict[Protocol, ModuleType] = {
    Protocol.OPENAI: openai_protocol,
    Protocol.ANTHROPIC: anthropic_protocol,
}
"""Each has ``call``, ``whole``, ``event`` and ``ends``."""

BYTES_PER_TOKEN = 2048
"""Of an event around one token: a stream of single letters takes some 300; optional fields may triple that."""
BYTES_MIN = 1 << 20
ERROR_BYTES = 1 << 16
"""Of an error that are looked at."""
SNIFFED_BYTES = 64
GATEWAY_TIMEOUTS = (504, 524)
"""A proxy waited no longer for the endpoint (524 is Cloudflare's), which may have been at the answer all the while."""


def answer_bytes_max(request: CompletionRequest) -> int:
    """No honest answer to ``request`` is longer."""
    return BYTES_MIN + BYTES_PER_TOKEN * request.output_tokens_max


class AnswerReader:
    """The ``exchange.Reader`` of one attempt."""

    def __init__(self, request: CompletionRequest, capabilities: Capabilities, prices: Prices) -> None:
        self._request, self._capabilities, self._prices = request, capabilities, prices
        self._protocol = PROTOCOLS[capabilities.protocol]
        self.head: Head | None = None
        self.streamed = False
        self._body = bytearray()
        self._events: Parser | None = None
        self._draft = Draft()
        self._failure: Fault | None = None
        self._over = False

    def begin(self, head: Head) -> None:
        self.head = head

    def feed(self, chunk: bytes) -> bool:
        assert self.head is not None
        if self.head.status != 200:
            self._body += chunk
            return len(self._body) < ERROR_BYTES
        if self._events is None and not self.streamed:
            self._body += chunk
            if not self._is_stream():
                return True
            self.streamed, self._events = True, Parser()
            chunk = bytes(self._body)
            self._body.clear()
        if self._events is not None:
            self._take(self._events.feed(chunk))
        return not self._over

    def finish(self, now_s: float) -> Completion:
        """The answer, once all of it is there. ``now_s``: wall time, for dates in headers.

        Raises:
            Fault: it is none.
        """
        assert self.head is not None
        if self.head.status != 200:
            fault = refused(self.head, bytes(self._body), now_s)
            if self.head.status in GATEWAY_TIMEOUTS:
                fault.usage = unanswered(self._request, generating=True, prices=self._prices)
            raise fault
        if self._events is not None:
            if not self._over:
                self._take(self._events.finish())
        else:
            self._read_object()
        if self._failure is not None:
            raise self._failure
        return self._draft.concluded(self._request, self._capabilities, self._prices)

    @property
    def ended(self) -> bool:
        """Whether all that matters is there, though its connection may not have ended well: an answer, or a status that
        says what is wrong.
        """
        if self.head is not None and self.head.status != 200:
            return True
        return self._failure is None and self._draft.end is not None

    @property
    def telling(self) -> bool:
        """Whether some of an answer has come."""
        return bool(self._draft.text) or self._draft.thought

    def spent(self, *, sent: bool, waited: bool) -> Usage:
        """What an attempt cost that broke off. ``sent``: whether the endpoint may have got the request; ``waited``:
        whether it had all the time that there was, and may have generated what a proxy kept back.
        """
        if not sent:
            return Usage(requests=1)
        if self.head is None:
            generating = waited or not self._capabilities.streaming
            return unanswered(self._request, generating=generating, prices=self._prices)
        return self._draft.usage(self._request, self._capabilities, self._prices)

    def _is_stream(self) -> bool:
        assert self.head is not None
        kind = self.head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return True
        start = bytes(self._body[:SNIFFED_BYTES]).removeprefix(b"\xef\xbb\xbf").lstrip()
        return kind != "application/json" and start.startswith((b"data:", b"event:", b":"))

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if self._over:
                return
            if self._protocol.ends(self._draft, event.name, event.data):
                self._over = True
                return
            self._take_one(event)

    def _take_one(self, event: Event) -> None:
        told = _parsed(event.data)
        if not isinstance(told, dict):
            if event.data.strip() and self._draft.end is None:
                self._fail(garbled(f"an event that is no JSON object: {event.data}"))
            return
        if is_error(told):
            self._fail(classified(within(told)))
            return
        self._protocol.event(self._draft, event.name, told)

    def _read_object(self) -> None:
        told = _parsed(self._body.decode("utf-8-sig", errors="replace"))
        if not isinstance(told, dict):
            start = self._body[:200].decode("utf-8", errors="replace")
            self._fail(garbled(f"no JSON object: {start}" if start.strip() else "an answer without a body"))
        elif is_error(told):
            self._failure = classified(within(told))
        else:
            self._draft.whole = True
            self._protocol.whole(self._draft, told)
            if self._draft.end is None:
                self._fail(garbled("an answer without choices"))

    def _fail(self, fault: Fault) -> None:
        """An error in the middle: what was generated before it may be billed."""
        usage = self._draft.usage(self._request, self._capabilities, self._prices)
        self._failure, self._over = replace_usage(fault, usage), True


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
