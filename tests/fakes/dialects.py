"""What endpoints say, in either protocol: the same things in other words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from synthesizer_svc.model.capabilities import Protocol
from tests.fakes.fault_server import Wire

Told = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens of a request; ``read`` holds those read from the cache and written to it."""

    read: int
    wrote: int
    cached: int = 0
    written: int = 0


class OpenAI:
    """Chat completions."""

    protocol = Protocol.OPENAI
    last = "[DONE]"
    stop, length = "stop", "length"

    def counted(self, counts: Counts) -> Told:
        """A usage record."""
        details = {"cached_tokens": counts.cached, "cache_write_tokens": counts.written}
        total = counts.read + counts.wrote
        read = {"prompt_tokens": counts.read, "prompt_tokens_details": details}
        return read | {"completion_tokens": counts.wrote, "total_tokens": total}

    def opening(self, usage: Told | None = None) -> list[Told]:
        """The first events of a stream. ``usage`` is what was counted by then, where the protocol tells that early."""
        return [self._chunk({"role": "assistant", "content": None}, usage=usage)]

    def piece(self, text: str) -> Told:
        """An event with some of the text."""
        return self._chunk({"content": text})

    def closing(self, reason: str | None = "stop", usage: Told | None = None) -> list[Told]:
        """The events that say why an answer ended, and what it took; ``last`` comes after them."""
        counted = [{"id": "c", "model": "m-1", "choices": [], "usage": usage}] if usage else []
        return [self._chunk({}, reason), *counted]

    def stream(self, text: str, counts: Counts, reason: str = "stop") -> list[Told | str]:
        """All events of a good answer."""
        pieces = [self.piece(text[:9]), self.piece(text[9:])]
        return [*self.opening(), *pieces, *self.closing(reason, self.counted(counts)), self.last]

    def whole(self, text: str | None, usage: Told | None = None, reason: str = "stop") -> Told:
        """An answer that does not stream."""
        choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
        return {"id": "c", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": usage}

    def error(self, message: str, code: object = None, kind: str = "invalid_request_error") -> Told:
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def _chunk(self, delta: Told, finish: str | None = None, usage: Told | None = None) -> Told:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk: dict[str, object] = {"id": "c", "object": "chat.completion.chunk", "model": "m-1", "choices": [choice]}
        return chunk | ({"usage": usage} if usage else {})


class Anthropic:
    """Messages."""

    protocol = Protocol.ANTHROPIC
    last: ClassVar[Told] = {"type": "message_stop"}
    stop, length = "end_turn", "max_tokens"

    def counted(self, counts: Counts) -> Told:
        """A usage record: the parts of the prompt exclude each other."""
        return {
            "input_tokens": counts.read - counts.cached - counts.written,
            "cache_creation_input_tokens": counts.written,
            "cache_read_input_tokens": counts.cached,
            "output_tokens": counts.wrote,
        }

    def opening(self, usage: Told | None = None) -> list[Told]:
        """See ``OpenAI.opening``."""
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": []}
        started = {"type": "message_start", "message": message | ({"usage": usage} if usage else {})}
        return [started, {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]

    def piece(self, text: str) -> Told:
        """See ``OpenAI.piece``."""
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}

    def closing(self, reason: str | None = "end_turn", usage: Told | None = None) -> list[Told]:
        """See ``OpenAI.closing``."""
        ended: dict[str, object] = {"type": "message_delta", "delta": {"stop_reason": reason}}
        return [{"type": "content_block_stop", "index": 0}, ended | ({"usage": usage} if usage else {})]

    def stream(self, text: str, counts: Counts, reason: str = "end_turn") -> list[Told | str]:
        """See ``OpenAI.stream``: what was read is told at the beginning, what was written at the end."""
        early = {**self.counted(counts), "output_tokens": 1}
        pieces = [{"type": "ping"}, self.piece(text[:9]), self.piece(text[9:])]
        return [*self.opening(early), *pieces, *self.closing(reason, {"output_tokens": counts.wrote}), self.last]

    def whole(self, text: str | None, usage: Told | None = None, reason: str = "end_turn") -> Told:
        """See ``OpenAI.whole``."""
        blocks = [] if text is None else [{"type": "text", "text": text}]
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": blocks}
        return answer | {"stop_reason": reason, "usage": usage}

    def error(self, message: str, code: object = None, kind: str = "invalid_request_error") -> Told:
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


Dialect = OpenAI | Anthropic
OPENAI, ANTHROPIC = OpenAI(), Anthropic()
DIALECTS: tuple[Dialect, ...] = (OPENAI, ANTHROPIC)


async def say(wire: Wire, *events: Told | str) -> None:
    """``events`` on a stream that has begun, as their protocol names them."""
    for told in events:
        name = "" if isinstance(told, str) else str(told.get("type", ""))
        await wire.event(told if isinstance(told, str) else json.dumps(told), name)
