"""An endpoint that does what it is made to do: streams or not, repeats by seed or not, follows schemas or not."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from synthesizer_svc.model.probes import WORDS
from tests.fakes.endpoint_answers import delta
from tests.fakes.fault_server import Wire


@dataclass(kw_only=True)
class CapableEndpoint:
    """A script of the fault server; the defaults are a good local server."""

    model: str = "m"
    streams: bool = True
    counts: bool = True
    seeded: bool = True
    schemas: str = "json_schema"
    """Of ``response_format``: what is followed; others are ignored."""
    caches: bool = True
    reads_words: int = 1_000_000
    """Of a prompt; what is beyond is cut off without a word."""
    refuses: tuple[str, ...] = ()
    context: dict[str, object] = field(default_factory=lambda: {"meta": {"n_ctx": 4096}})
    prefixes: set[str] = field(default_factory=set)

    async def __call__(self, wire: Wire) -> None:
        if wire.request.method == "GET":
            return await wire.answer(200, {"data": [{"id": self.model, **self.context}]})
        asked = wire.request.json
        for name in self.refuses:
            if name in asked:
                told = {
                    "message": f"{name}: Extra inputs are not permitted",
                    "param": name,
                    "type": "invalid_request_error",
                }
                return await wire.answer(400, {"error": told})
        text = self._text(asked)
        usage = self._usage(asked, text)
        if not (self.streams and asked.get("stream")):
            choice = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
            return await wire.answer(200, {"model": self.model, "choices": [choice], "usage": usage})
        await wire.begin_stream()
        await wire.event(delta(text) | {"model": self.model})
        await wire.event(delta(finish="stop", usage=usage))
        await wire.event("[DONE]")
        return await wire.end_stream()

    def _text(self, asked: dict) -> str:
        kind = asked.get("response_format", {}).get("type", "")
        if kind and kind == self.schemas:
            return json.dumps({"tile": 16} if kind == "json_schema" else {"greeting": "bonjour"})
        seed = asked.get("seed") if self.seeded else None
        return " ".join(random.Random(seed).choices(WORDS, k=12))

    def _usage(self, asked: dict, text: str) -> dict | None:
        if not self.counts:
            return None
        prefix = asked["messages"][0]["content"]
        cached = len(prefix.split()) if self.caches and prefix in self.prefixes else 0
        self.prefixes.add(prefix)
        read = min(self.reads_words, sum(len(message["content"].split()) for message in asked["messages"]))
        return {
            "prompt_tokens": read,
            "completion_tokens": len(text.split()),
            "prompt_tokens_details": {"cached_tokens": cached},
        }
