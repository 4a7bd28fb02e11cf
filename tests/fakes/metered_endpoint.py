"""A vendor with books of its own, over HTTP: it bills what it draws as soon as a question arrives, answered or not."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Vendor:
    """``billed`` maps each question's text to the tokens of every time it was asked."""

    url: str = ""
    longest_s: float = 0.3
    billed: dict[str, list[int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    rng: random.Random = field(default_factory=lambda: random.Random(5))

    @property
    def tokens(self) -> int:
        with self.lock:
            return sum(sum(each) for each in self.billed.values())

    @property
    def questions(self) -> int:
        with self.lock:
            return sum(len(each) for each in self.billed.values())

    def serve(self, body: dict[str, Any]) -> tuple[bytes, float]:
        """The answer to a chat completion, and the seconds that it takes."""
        texts = [message["content"] for message in body["messages"]]
        with self.lock:
            read = self.rng.randint(1, sum(len(text.encode()) for text in texts))
            wrote = self.rng.randint(1, body["max_tokens"])
            self.billed.setdefault(texts[-1], []).append(read + wrote)
            wait_s = self.rng.uniform(0, self.longest_s)
        answer = {
            "id": "c",
            "object": "chat.completion",
            "model": "metered-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
            "usage": {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote},
        }
        return json.dumps(answer).encode(), wait_s


@contextmanager
def metered_endpoint(vendor: Vendor) -> Iterator[Vendor]:
    """``vendor`` at its URL, for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer, wait_s = vendor.serve(body)
            time.sleep(wait_s)  # at work
            try:
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                return  # who asked is dead

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    vendor.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield vendor
    finally:
        server.shutdown()
        server.server_close()
