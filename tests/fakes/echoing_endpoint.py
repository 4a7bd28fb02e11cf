"""An endpoint, over HTTP, that repeats whatever key it is sent: in errors, headers, names of models and answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from synthesizer_svc.model.openai import DONE

RIGHT = Path(__file__).parents[1] / "kernels" / "right.cpp"
USAGE = {"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": 27}


@dataclass
class Echo:
    """``echoed`` counts the answers that held the key; ``without`` the questions that came without one."""

    url: str = ""
    echoed: int = 0
    without: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self, key: str) -> int:
        """Of this question, from 0."""
        with self.lock:
            self.without += not key
            self.echoed += 1
            return self.echoed - 1


def kernel(key: str, number: int, variable: str) -> str:
    """A right kernel that tells the key in a comment, and fails where it finds ``variable`` in its environment."""
    seen = f'  if (std::getenv("{variable}")) return 1;\n'
    text = RIGHT.read_text().replace("{\n  const auto* x", "{\n" + seen + "  const auto* x")
    return f"#include <cstdlib>\n// {number}: for {key}\n{text}"


def escaped(key: str) -> str:
    """``key`` as encoders write it that escape what a page could take for markup (.NET's, PHP's, Go's)."""
    return "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in key)


@contextmanager
def echoing_endpoint(variable: str) -> Iterator[Echo]:
    """An endpoint that fails in every way it has, and then answers with kernels (see ``kernel``)."""
    echo = Echo()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            key = self._key()
            echo.number(key)
            self._whole(200, {"data": [{"id": f"m {key}"}, {"id": key}]}, key)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            key = self._key()
            number = echo.number(key)
            told = f"who sent {dict(self.headers)}?"
            faults = [
                lambda: self._whole(500, {"error": {"message": told, "type": key, "code": key, "param": key}}, key),
                lambda: self._whole(429, {"error": told}, key),
                lambda: self._whole(503, f"<html>{told}</html>", key),
                lambda: self._whole(502, {"error": {"message": f'upstream: {{"key": "{escaped(key)}"}}'}}, key),
                lambda: self._stream(key, f"{{{told}"),
                lambda: self._stream(key, json.dumps({"error": {"message": told, "code": key}})),
                lambda: self._stream(key, *_answer(key, f"I will write no kernel for {key}.")),
            ]
            if number < len(faults):
                return faults[number]()
            text = f"For {key}, or {escaped(key)}.\n\n```cpp\n{kernel(key, number, variable)}```\nYours, {key}"
            return self._stream(key, *_answer(key, text))

        def _key(self) -> str:
            return self.headers.get("authorization", "").removeprefix("Bearer ")

        def _whole(self, status: int, body: object, key: str) -> None:
            raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self._head(status, key, ("content-type", "application/json"), ("content-length", str(len(raw))))
            self.wfile.write(raw)

        def _stream(self, key: str, *events: str) -> None:
            self._head(200, key, ("content-type", "text/event-stream"), ("connection", "close"))
            for each in events:
                self.wfile.write(f"data: {each}\n\n".encode())
            self.close_connection = True

        def _head(self, status: int, key: str, *headers: tuple[str, str]) -> None:
            self.send_response(status, f"said {key}")
            for name in ("x-request-id", "set-cookie", "retry-after"):
                self.send_header(name, key)
            for name, value in headers:
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    echo.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield echo
    finally:
        server.shutdown()
        server.server_close()


def _answer(key: str, text: str) -> list[str]:
    """Events of an answer in pieces, one of which ends within the key."""
    cut = text.find(key) + len(key) // 2
    choices = [
        {"index": 0, "delta": {"content": text[:cut]}, "finish_reason": None},
        {"index": 0, "delta": {"content": text[cut:]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    chunks = [{"id": key, "object": "chat.completion.chunk", "model": key, "choices": [each]} for each in choices]
    return [json.dumps(each) for each in (*chunks, {"model": key, "choices": [], "usage": USAGE})] + [DONE]
