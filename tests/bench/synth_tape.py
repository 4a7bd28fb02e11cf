"""A loopback HTTP server between searches and a model's endpoint: it records what was answered, or plays that back.

A recording is JSON lines: a header, then one answer a line. Headers of requests, and with them keys, are never kept,
nor are the questions, only their hashes. Played back, a question gets the answer to an equal one of its search; without
one, the next answer of its search that has not been played, and from the first again when all were; it takes as long
as it did when it was recorded.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

KIND = "kernelevolve synthesizer recording"
FORMAT = 2
DROPPED = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
"""Headers of a request that the connection beyond makes itself."""
UPSTREAM_S = 600.0
COUNTS = "/tokenize"
"""Ends the path of a method that answers about one text, again and again alike, and about no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One recorded answer to ``method path`` in the search named ``cell``; a path begins with the endpoint's name."""

    cell: str
    method: str
    path: str
    asked: str
    """SHA-256 of the request's body."""
    status: int
    content_type: str
    body: str
    seconds: float


@dataclass(slots=True, kw_only=True)
class Tape:
    """Answers, and how they were used. ``upstream``: URLs by endpoint when recording; empty when playing."""

    upstream: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    played: int = 0
    other: int = 0
    """Of those played, answers to another question than the one that was asked."""
    _used: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, answer: Answer) -> None:
        with self._lock:
            self.answers.append(answer)

    def play(self, cell: str, method: str, path: str, asked: str) -> Answer | None:
        """The answer to give; None when nothing like the question was recorded for ``cell``."""
        with self._lock:
            place = (cell, method, path)
            mine = [n for n, one in enumerate(self.answers) if (one.cell, one.method, one.path) == place]
            if not mine:
                return None
            if path.endswith(COUNTS):
                return next((self.answers[n] for n in mine if self.answers[n].asked == asked), None)
            if self._used.issuperset(mine):
                self._used.difference_update(mine)
            fresh = [n for n in mine if n not in self._used]
            equal = [n for n in fresh if self.answers[n].asked == asked]
            if method == "POST":
                self.played += 1
                self.other += not equal
            chosen = (equal or fresh)[0]
            self._used.add(chosen)
            return self.answers[chosen]

    def save(self, path: Path) -> None:
        with self._lock:
            lines = [{"kind": KIND, "format": FORMAT, **self.header}, *map(asdict, self.answers)]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def load(path: Path) -> Tape:
    """A recording to play.

    Raises:
        ValueError: it is none.
        OSError: it cannot be read.
    """
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    if header.get("kind") != KIND or header.get("format") != FORMAT:
        raise ValueError(f"{path} is not a recording of format {FORMAT}")
    try:
        return Tape(header=header, answers=[Answer(**json.loads(line)) for line in lines])
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error


@contextmanager
def running(tape: Tape) -> Iterator[str]:
    """The address that ``tape`` is served at; a search's endpoint is at ``ADDRESS/CELL/ENDPOINT``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(tape))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(tape: Tape) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            _, cell, path = self.path.split("/", 2)
            asked = hashlib.sha256(body).hexdigest()
            if tape.upstream:
                try:
                    self._forward(cell, path, asked, body)
                except (httpx.HTTPError, ConnectionError) as error:  # either side hung up: no answer to record
                    self.log_error("%s of %s: %r", path, cell, error)
                    self.close_connection = True
                return
            answer = tape.play(cell, self.command, path, asked)
            if answer is None:
                message = f"nothing is recorded for {self.command} {path} in {cell}"
                self._begin(400, "application/json")
                self.wfile.write(json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode())
                return
            time.sleep(answer.seconds)
            self._begin(answer.status, answer.content_type)
            self.wfile.write(answer.body.encode())

        def _forward(self, cell: str, path: str, asked: str, body: bytes) -> None:
            began = time.monotonic()
            headers = {name: value for name, value in self.headers.items() if name.lower() not in DROPPED}
            endpoint, rest = path.split("/", 1)
            url = f"{tape.upstream[endpoint]}/{rest}"
            with httpx.stream(
                self.command, url, headers=headers | {"accept-encoding": "identity"}, content=body, timeout=UPSTREAM_S
            ) as came:
                content_type = came.headers.get("content-type", "application/json")
                self._begin(came.status_code, content_type)
                parts = []
                for part in came.iter_bytes():
                    parts.append(part)
                    self.wfile.write(part)
            tape.record(
                Answer(
                    cell=cell,
                    method=self.command,
                    path=path,
                    asked=asked,
                    status=came.status_code,
                    content_type=content_type,
                    body=b"".join(parts).decode(errors="replace"),
                    seconds=round(time.monotonic() - began, 3),
                )
            )

        def _begin(self, status: int, content_type: str) -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("connection", "close")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
            """Nothing: the searches log their calls."""

    return Handler
