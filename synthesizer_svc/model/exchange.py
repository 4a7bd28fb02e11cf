"""What is exchanged with an endpoint, apart from how bytes travel: the port of ``http`` (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request, without what proves who asks: the transport adds it. ``body`` empty: GET, otherwise POST."""

    path: str
    """Beneath the endpoint's URL, e.g. ``/chat/completions``."""
    body: bytes = b""
    headers: Headers = ()
    streams: bool = False
    """Whether a stream is asked for: its connection is closed afterwards. Some servers close it as they end a stream,
    and the next question would be lost with it, and may have been billed.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """``headers`` have lower-case names; of repeated ones the last counts."""

    status: int
    headers: Mapping[str, str]


class Reader(Protocol):
    """Takes an answer in as it arrives."""

    def begin(self, head: Head) -> None: ...

    def feed(self, chunk: bytes) -> bool:
        """False: nothing more is wanted, the rest need not be read."""
        ...


class Trouble(StrEnum):
    """How an exchange failed."""

    UNREACHABLE = "unreachable"
    """No connection, or none by TLS: nothing was sent."""
    UNTRUSTED = "untrusted"
    """Its certificate is not one that is trusted: nothing was sent."""
    CUT = "cut"
    """The connection ended, or broke HTTP's rules, after the request was sent."""
    SILENT = "silent"
    """Nothing came for longer than is waited."""
    LATE = "late"
    """The deadline passed, whatever was still coming."""
    TOO_LONG = "too_long"
    """More bytes than the answer may have."""
    ENCODED = "encoded"
    """Compressed, though that was declined."""


class TransportFault(Exception):
    """An exchange that did not end. What had arrived is with the reader."""

    def __init__(self, trouble: Trouble, detail: str) -> None:
        self.trouble, self.detail = trouble, detail
        super().__init__(f"{trouble}: {detail}")


class Transport(Protocol):
    """A way to one endpoint."""

    async def send(self, call: Call, reader: Reader, *, deadline_s: float, answer_bytes_max: int) -> None:
        """Send ``call`` and let ``reader`` have the answer, whatever its status. Redirects are answers, too.

        Raises:
            TransportFault: it did not end.
        """
        ...

    async def close(self) -> None: ...
