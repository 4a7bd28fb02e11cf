"""A vendor of kernels with a meter of its own, over HTTP: it bills a question when it arrives, answered or not.

It can go away and come back at the same address, and keep answers to itself for as long as a test wants.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

READ, WROTE = 900, 100
EACH = READ + WROTE
"""Tokens that a question costs."""
KERNEL = """Variant {n}.

```cpp
#include "ke_abi.h"
extern "C" int ke_launch(const KeTensor* in, int n_in, KeTensor* out, int n_out, void* stream) {{ return {n}; }}
```
"""
PROSE = "I shall think about it. This is thought {n}."
SETTINGS = {
    "MODEL_ASKING": "whole",
    "MODEL_SHARE_PERCENT": "100",
    "MODEL_OUTPUT_TOKENS_MAX": "1000",
    "MODEL_PROMPT_TOKENS_MAX": "12000",
    "MODEL_RETRY_PAUSE_S": "0.01",
    "SIMULATED_MEDIAN_S": "0.01",
    "SIMULATED_LONGEST_S": "0.05",
}
"""For searches that ask for kernels alone, and are quick."""
HEADERS = {"content-type": "application/json", "connection": "close"}


@dataclass
class Vendor:
    """``asked`` maps each question to how often it was billed.

    ``prose_first``: the first answer of a conversation holds no kernel. ``goes_after``: it is gone after so many
    answers. ``holds_from``: from the answer of this number on, those of second turns are kept back until ``release``.
    """

    prose_first: bool = False
    goes_after: int = -1
    holds_from: int = -1
    port: int = 0
    asked: dict[str, int] = field(default_factory=dict)
    answers: int = 0
    cut: int = 0
    """Connections that ended without an answer, and without a bill."""
    held: list[str] = field(default_factory=list)
    """Questions whose answers were kept back."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def tokens(self) -> int:
        """On its bill."""
        with self.changed:
            return EACH * sum(self.asked.values())

    @property
    def gone(self) -> bool:
        return 0 <= self.goes_after <= self.answers

    def await_held(self, deadline_s: float) -> None:
        """Until an answer is kept back."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.held, deadline_s)

    def release(self) -> None:
        """Keep nothing back any more."""
        with self.changed:
            self.holds_from = -1
            self.changed.notify_all()

    def serve(self, body: bytes) -> bytes | None:
        """The answer; None when it is gone, and nothing was billed."""
        question = hashlib.sha256(body).hexdigest()
        messages: list[dict[str, Any]] = json.loads(body)["messages"]
        again = sum(message["role"] == "user" for message in messages) > 1
        with self.changed:
            if self.gone:
                self.cut += 1
                return None
            self.asked[question] = self.asked.get(question, 0) + 1
            number = self.answers
            self.answers += 1
            if again and 0 <= self.holds_from <= number:
                self.held.append(question)
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.holds_from < 0)
        text = (PROSE if self.prose_first and not again else KERNEL).format(n=number)
        answer = {
            "id": "c",
            "object": "chat.completion",
            "model": "vendor-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": READ, "completion_tokens": WROTE, "total_tokens": EACH},
        }
        return json.dumps(answer).encode()


@contextmanager
def open_for_business(vendor: Vendor) -> Iterator[Vendor]:
    """``vendor`` at its address, which is the same each time, for the length of the block or until it goes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = vendor.serve(self.rfile.read(int(self.headers["content-length"])))
            self.close_connection = True
            if answer is None:
                return
            try:
                self.send_response(200)
                for name, value in {**HEADERS, "content-length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                return  # who asked is dead
            if vendor.gone:
                server.socket.close()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", vendor.port), Handler)
    vendor.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield vendor
    finally:
        vendor.release()
        if thread.is_alive():
            server.shutdown()
        server.server_close()
